/** Node only: folders, other processes, damaged files. */

import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { connect } from 'nacredb';
import { expect, test } from 'vitest';
import { connected, durable, expectKind } from './testing.js';

const entry = new URL('../dist/node.js', import.meta.url).href;

/** Starts a script that can use `connect` and `folder`. */
function script(folder: string, body: string): string[] {
  const given = `import { connect } from ${JSON.stringify(entry)}; const folder = ${JSON.stringify(folder)};`;
  return ['--input-type=module', '-e', `${given}\n${body}`];
}

test('a path and a file URL are the same place', async () => {
  const folder = path.join(await durable.fresh(), 'made', 'on the way');
  const first = await connected(folder);
  await first.exec('create table t (a int); insert into t values (1)');
  await first.close();
  const second = await connected(pathToFileURL(folder).href);
  expect((await second.query('select a from t')).rows).toEqual([{ a: 1 }]);
});

test('awaited calls that follow each other let timers run, as background work does', async () => {
  const db = await connected('memory://');
  const one = await db.prepare('select 1');
  let isDue = false;
  setTimeout(() => (isDue = true), 1);
  let calls = 0;
  while (!isDue && calls < 1_000_000) {
    await one.run();
    calls++;
  }
  expect(isDue).toBe(true);
});

test('the first connections of a process are separate databases, wherever their engine comes from', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    script(
      '',
      `import * as fs from 'node:fs';
      const bytes = fs.readFileSync(new URL('./nacre_bg.wasm', ${JSON.stringify(entry)}));
      const wasmModule = await WebAssembly.compile(bytes);
      const [a, b] = await Promise.all([connect('memory://', { wasmModule }), connect('memory://')]);
      await b.exec('create table t (a int)');
      await a.exec('select * from t').catch((error) => console.log(error.kind));
      console.log(String((await b.query('select count(*) as n from t')).rows[0].n));`,
    ),
  );
  expect(stdout).toBe('not_found\n0\n');
});

test('a folder that cannot be created is an error', async () => {
  const folder = await durable.fresh();
  fs.writeFileSync(path.join(folder, 'file'), '');
  await expectKind(connect(path.join(folder, 'file', 'below')), 'io');
});

test('the name :memory: is refused instead of becoming a folder', async () => {
  await expectKind(connect(':memory:'), 'unsupported');
  await expectKind(connect(''), 'not_found');
  expect(fs.existsSync(':memory:')).toBe(false);
});

test('a process that ends without closing loses nothing', async () => {
  const folder = await durable.fresh();
  const body = `const db = await connect(folder);
    await db.exec('create table t (a int primary key); insert into t values (1), (2)');`;
  await promisify(execFile)(process.execPath, script(folder, body));
  const db = await connected(folder);
  expect((await db.query('select a from t order by a')).rows).toEqual([{ a: 1 }, { a: 2 }]);
});

test('a process that ends by itself stays until its relaxed commits are synced', async () => {
  const folder = await durable.fresh();
  const body = `const db = await connect(folder, { durability: 'relaxed' });
    await db.exec('create table t (a int primary key)');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await db.exec('insert into t values (1)');
    const inserted = performance.now();
    process.on('exit', () => console.log(performance.now() - inserted));`;
  const { stdout } = await promisify(execFile)(process.execPath, script(folder, body));
  expect(Number(stdout)).toBeGreaterThan(50);
  const db = await connected(folder);
  expect((await db.query('select a from t')).rows).toEqual([{ a: 1 }]);
});

test('relaxed commits are synced after 100 ms, also the last of a burst', async () => {
  const folder = await durable.fresh();
  const body = `const db = await connect(folder, { durability: 'relaxed' });
    await db.exec('create table t (a int primary key)');
    await new Promise((resolve) => setTimeout(resolve, 400));
    // The first and the second commit schedule a sync each, the third does not.
    await db.exec('insert into t values (1)');
    for (const until = performance.now() + 102; performance.now() < until;);
    await db.exec('insert into t values (2)');
    await db.exec('insert into t values (3)');
    setTimeout(() => console.log('idle'), 400);
    setInterval(() => {}, 1000);`;
  const other = spawn(process.execPath, script(folder, body), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => other.on('close', resolve));
  await new Promise((resolve) => other.stdout.once('data', resolve));
  other.kill('SIGKILL');
  await ended;
  const db = await connected(folder);
  expect((await db.query('select a from t order by a')).rows).toEqual([
    { a: 1 },
    { a: 2 },
    { a: 3 },
  ]);
});

test('waiting for a lock does not keep a process alive after the lock was released', async () => {
  const body = `const db = await connect('memory://');
    await db.exec('create table t (a int primary key); insert into t values (1)');
    let waiting;
    await db.transaction(async (tx) => {
      await tx.exec('update t set a = 2');
      waiting = db.exec('update t set a = a + 1');
    });
    await waiting;`;
  const timeout = 6000;
  await promisify(execFile)(process.execPath, script('', body), { timeout });
});

test('waiting for a lock keeps a process alive that has nothing else to do', async () => {
  const body = `const db = await connect('memory://');
    await db.exec('create table t (a int primary key); insert into t values (1)');
    await db.transaction(async (tx) => {
      await tx.exec('update t set a = 2');
      console.log('waiting');
      await db.exec('update t set a = 3');
    });`;
  const other = spawn(process.execPath, script('', body), { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => other.on('close', resolve));
  await new Promise((resolve) => other.stdout.once('data', resolve));
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(other.exitCode).toBe(null);
  other.kill('SIGKILL');
  await ended;
});

test('a folder is in use while another process has it, until that one is killed', async () => {
  const folder = await durable.fresh();
  const body = `const db = await connect(folder); console.log('open'); setInterval(() => {}, 1000);`;
  const other = spawn(process.execPath, script(folder, body), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => other.on('close', resolve));
  await new Promise((resolve) => other.stdout.once('data', resolve));
  await expectKind(connect(folder), 'in_use');
  other.kill('SIGKILL');
  await ended;
  await connected(folder);
});

test('a log without its end is corrupt, and opens without the missing commits on request', async () => {
  const folder = await durable.fresh();
  const first = await connected(folder);
  await first.exec('create table t (a int); insert into t values (1)');
  await first.exec('insert into t values (2)');
  expect((await first.storage()).losses).toEqual([]);
  await first.close();

  const log = fs.readdirSync(folder).find((name) => name.startsWith('log-'))!;
  const bytes = fs.readFileSync(path.join(folder, log));
  const end = bytes.findLastIndex((byte) => byte !== 0);
  fs.writeFileSync(path.join(folder, log), bytes.subarray(0, end - 60));

  const failure = connect(folder);
  await expectKind(failure, 'corrupt');
  await expect(failure).rejects.toThrow('although the log reached position');
  const second = await connected(folder, { acceptLoss: true });
  expect((await second.storage()).losses).toEqual([expect.stringContaining(log)]);
  expect((await second.query('select a from t')).rows).toEqual([{ a: 1 }]);
  await second.close();
  const third = await connected(folder);
  expect((await third.storage()).losses).toEqual([]);
});

test('a flipped byte in a segment is reported with its place, and affects no other table', async () => {
  const folder = await durable.fresh();
  const first = await connected(folder);
  await first.exec('create table t (a int primary key, b text); create table other (a int)');
  await first.exec("insert into t values (1, 'a'), (2, 'b'); insert into other values (7)");
  await first.exec('optimize table t flush');
  const segment = (await first.inspect()).find((table) => table.name === 't')!.segments[0]!.name;
  await first.close();

  const file = path.join(folder, segment);
  const bytes = fs.readFileSync(file);
  bytes[8 + Math.floor(bytes.length / 8)]! ^= 0x10;
  fs.writeFileSync(file, bytes);

  const second = await connected(folder);
  const failure = second.query('select * from t');
  await expectKind(failure, 'corrupt');
  await expect(failure).rejects.toThrow(segment);
  expect((await second.query('select a from other')).rows).toEqual([{ a: 7 }]);
});
