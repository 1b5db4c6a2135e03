/**
 * `node tools/first-load.mjs DIST OUT`: what a page does that has just been opened, on an engine that
 * notes which of its functions run (`tools/divide`). Writes their numbers: they are what is loaded
 * first, and everything else is fetched when it is needed.
 *
 * It does what most pages do in their first minutes: tables, rows by key, lists, simple aggregates,
 * transactions, mistakes, statements that give way, and opening again. The limit in `tools/size.mjs` decides what else fits.
 * Left out, because they are large: joins, further indexes, loads and the flushes of many rows
 * (0.1 MB), and streams.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';

const [dist, out] = process.argv.slice(2);
const instances = [];
WebAssembly.Instance = class extends WebAssembly.Instance {
  constructor(...args) {
    super(...args);
    instances.push(this);
  }
};
const { connect, sql } = await import(pathToFileURL(path.join(dist, 'node.js')).href);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-first-load-'));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs what fails as a user's mistakes do. */
async function mistake(call) {
  let failed = false;
  await call.catch((error) => {
    failed = typeof error.kind === 'string';
    String(error);
  });
  if (!failed) {
    throw new Error('a mistake was accepted');
  }
}

async function tables(db) {
  await db.exec(`create table if not exists note (
    id bigint primary key, title text not null, body text, score double, done boolean default false,
    stars int, price decimal(10, 2), day date, at timestamp, doc json)`);
  await db.exec(
    'create table if not exists tag (note bigint, name text, primary key (note, name))',
  );
  await db.exec(
    'create table if not exists event (id bigint auto_increment primary key, kind text, n int)',
  );
}

async function writes(db, from) {
  const insert = await db.prepare(
    'insert into note (id, title, body, score, stars, price, day, at, doc) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  for (let id = from; id < from + 300; id++) {
    const at = new Date(1_700_000_000_000 + id * 60_000);
    await insert.run([
      id,
      `note ${id}`,
      id % 9 ? 'text '.repeat(id % 7) : null,
      id / 3,
      id % 5,
      `${id}.25`,
      at,
      at,
      { tags: ['a', 'b'], n: id },
    ]);
  }
  await db.query(sql`insert into tag values (${from}, 'shell'), (${from}, 'pearl')`);
  await db.query("insert into event (kind, n) values ('open', 1), ('close', 2) returning id");
  await db.query(
    'insert into note (id, title) values (?, ?) on conflict (id) do update set title = excluded.title',
    [from, 'again'],
  );
  await db.query("insert into tag values (?, 'shell') on conflict do nothing", [from]);
  await db.query('update note set stars = stars + 1, done = true where id = ?', [from]);
  await db.query('update note set score = score * 2 where stars = 3 and day is not null');
  await db.query('delete from note where id = ?', [from + 1]);
  await db.query('delete from tag where note > ?', [1_000_000]);
  await db.transaction(async (tx) => {
    await tx.query('update note set title = ? where id = ?', ['moved', from + 2]);
    await tx.query('select title from note where id = ?', [from + 2]);
  });
  await mistake(
    db.transaction(async (tx) => {
      await tx.query('delete from note where id = ?', [from + 3]);
      await tx.query('insert into note (id, title) values (?, ?)', [from + 4, 'twice']);
    }),
  );
}

async function reads(db, from) {
  const one = await db.prepare('select * from note where id = ?');
  for (let id = from; id < from + 20; id++) {
    await one.get([id]);
  }
  await one.all([from]);
  await db.query('select title, doc from note where id = ?', [from]);
  await db.query('select id, title from note where title = ?', [`note ${from + 5}`]);
  await db.query('select id, title from note order by id desc limit 10');
  await db.query('select * from note order by at desc, title limit 20 offset 5');
  await db.query('select title from note order by at desc limit 5');
  await db.query('select id, title from note where stars >= 2 order by score, day desc');
  await db.query("select * from note where title like 'note 1%' and stars >= 2 or id in (1, 2, 3)");
  await db.query('select * from note where id between ? and ? and body is not null', [
    from,
    from + 9,
  ]);
  await db.query('select count(*) as n from note');
  await db.query(
    'select count(*), sum(stars), avg(score), min(at), max(price), count(distinct stars) from note where done = false',
  );
  await db.query(
    'select stars, count(*) as n, sum(score) from note group by stars order by n desc',
  );
  await db.query('select distinct stars from note');
  await db.query(
    "select coalesce(body, ''), upper(title), length(title), stars + 1, case when done then 1 else 0 end from note limit 3",
  );
}

async function mistakes(db) {
  await mistake(db.query('select from where'));
  await mistake(db.query('select * from nowhere'));
  await mistake(db.query('select nothing from note'));
  await mistake(db.query("insert into note (id, title) values (3, 'twice')"));
  await mistake(db.query('insert into note (id) values (100000)'));
}

/** Tables that come and go, and forms of statements that the others lack. */
async function others(db) {
  await db.exec('drop table if exists draft');
  await db.exec('create table draft (id bigint primary key, name varchar(20), at datetime)');
  await db.query("insert into draft (id, name) values (?, ?), (2, ?), (3, 'c')", [1, 'a', 'b']);
  await db.query('insert into draft select id + 10, name, now() from draft');
  await db.query('select name, count(*) from draft group by name');
  await db.query('select * from draft where name is null or at > ? order by id', [new Date(0)]);
  await db.query('delete from draft');
  await db.exec('begin; insert into draft (id) values (1); rollback; truncate table draft');
  await db.exec('drop table draft');
}

/** Runs work on a clock that jumps at each look, so that statements give way as long ones do. */
async function slowly(work) {
  const { now } = performance;
  let skipped = 0;
  performance.now = () => now.call(performance) + (skipped += 2);
  try {
    await work();
  } finally {
    performance.now = now;
  }
}

async function open(durability = 'strict') {
  return connect(folder, { durability });
}

try {
  let db = await open();
  for (let round = 0; round < 3; round++) {
    await tables(db);
    await writes(db, 1 + round * 300);
    await reads(db, 1 + round * 300);
    await mistakes(db);
    await others(db);
    await db.close();
    db = await open('relaxed');
    await reads(db, 1);
  }
  const many = await db.prepare(
    'insert into event (kind, n) values ' + Array(500).fill('(?, ?)').join(', '),
  );
  for (let round = 0; round < 40; round++) {
    await many.run(Array.from({ length: 1_000 }, (_, at) => (at % 2 ? at : `kind ${at % 10}`)));
    await pause(2);
  }
  await pause(300);
  await db.close();
  db = await open();
  await reads(db, 1);
  await writes(db, 5_000);
  await db.close();
  const memory = await connect('memory://');
  await memory.query('select 1 + 1 as two');
  await tables(memory);
  await writes(memory, 1);
  await reads(memory, 1);
  await others(memory);
  await slowly(async () => {
    await writes(memory, 1_000);
    await reads(memory, 1_000);
    await others(memory);
  });
  await memory.close();

  const ran = new Set();
  for (const { exports } of instances) {
    for (const [name, value] of Object.entries(exports)) {
      if (name.startsWith('ran:') && value.value === 1) {
        ran.add(Number(name.slice('ran:'.length)));
      }
    }
  }
  fs.writeFileSync(out, [...ran].sort((a, b) => a - b).join('\n'));
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
