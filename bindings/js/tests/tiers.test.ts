/** Node only: states of the past, leases, and what happens while a blob store does not answer, or answers wrongly. */

import { connect, type Database } from 'nacredb';
import { expect, test } from 'vitest';
import { attached, blobs, emptyFolder, s3, until } from './stand-in.js';
import { connected, expectKind } from './testing.js';

/** The keys of a table. */
async function keys(db: Database): Promise<number[]> {
  const { rows } = await db.query<{ id: bigint }>('select id from item order by id');
  return rows.map((row) => Number(row.id));
}

/** A database with a table of some rows in one segment, whose files are all blobs. */
async function filled(rows = 1_000): Promise<void> {
  const writer = await connect(emptyFolder(), { blobs: blobs() });
  await writer.exec('create table item (id bigint primary key, name text, key by_name (name))');
  const id = Array.from({ length: rows }, (_, at) => at);
  await writer.insertRows('item', { id, name: id.map((at) => `item ${at * 7919}`) });
  await writer.exec('optimize table item full');
  await writer.close();
}

test('a state of the past is opened by its position or its time, and stays', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 0 });
  await writer.exec('create table item (id bigint primary key)');
  const states = [];
  for (let id = 1; id <= 3; id += 1) {
    await writer.query('insert into item values (?)', [id]);
    await writer.upload();
    const lag = (await writer.lag())!;
    states.push({ position: lag.position, at: lag.uploadedAt });
    // Times of uploads are known to a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
  }
  await writer.query('delete from item where id = 1');
  await writer.upload();
  for (const [at, { position, at: time }] of states.entries()) {
    const expected = [1, 2, 3].slice(0, at + 1);
    const byPosition = await attached({ asOf: position });
    expect(await keys(byPosition)).toEqual(expected);
    expect(await keys(await attached({ asOf: time }))).toEqual(expected);
    expect(await byPosition.refresh()).toBe(false);
    await expectKind(byPosition.query('insert into item values (9)'), 'unsupported');
  }
  expect(await keys(await attached())).toEqual([2, 3]);
  await expectKind(attached({ asOf: 1e15 }), 'not_found');
  await expectKind(attached({ asOf: new Date(0) }), 'not_found');
  for (const asOf of [-1, 0.5, NaN, new Date(NaN), '4711' as never]) {
    await expectKind(attached({ asOf }), 'type');
  }
  const state = { blobs: blobs(), asOf: states[0]!.position };
  await expectKind(connect('memory://', state), 'unsupported');
  await expectKind(connect('memory://', { asOf: 1 }), 'type');
});

test('without a history there is no state but the newest', async () => {
  const options = { blobs: blobs({ historyMs: 0 }), blobLag: 0 };
  const writer = await connected(emptyFolder(), options);
  await writer.exec('create table item (id bigint primary key)');
  await writer.upload();
  const { position } = (await writer.lag())!;
  await writer.query('insert into item values (1)');
  await writer.exec('optimize table item full');
  await writer.upload();
  await expectKind(attached({ asOf: position }), 'not_found');
});

test('a reader takes a lease, and gives it back', async () => {
  await filled();
  const leases = () => [...s3.objects.keys()].filter((name) => name.includes('/leases/'));
  const reader = await attached();
  await until(async () => (await reader.lag())!.lease === 'held');
  expect(leases()).toHaveLength(1);
  await reader.close();
  expect(leases()).toEqual([]);

  expect((await (await attached({}, { leaseMs: 0 })).lag())!.lease).toBe('none');
  s3.state.refuse = (method) => (method === 'PUT' ? 'AccessDenied' : null);
  const refused = await attached();
  await until(async () => (await refused.lag())!.lease === 'refused');
  expect(await keys(refused)).toHaveLength(1_000);
  s3.state.refuse = () => null;
});

test('SQL tells the lag, and waits for a position', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 3_600_000 });
  await writer.exec('create table item (id bigint primary key)');
  await writer.upload();
  const reader = await attached();
  await writer.query('insert into item values (1)');
  const { position } = (await writer.lag())!;
  await expectKind(reader.query(`wait for position ${position} timeout 0`), 'unavailable');
  await writer.upload();
  await reader.query(`wait for position ${position} timeout 20`);
  expect(await keys(reader)).toEqual([1]);
  const [lag] = (await reader.query('show lag')).rows;
  expect(lag).toMatchObject({ log_position: BigInt(position) });
});

test('a signal ends a statement that waits for the blob store', { timeout: 60_000 }, async () => {
  await filled();
  const options = { blobs: blobs({ retryForMs: 0, warm: false }), blobPatience: 600_000 };
  const db = await connected('memory://', options);
  s3.state.isAway = true;
  const began = performance.now();
  for (const sql of [
    'select sum(length(name)) from item',
    'select name from item where id = 77',
    "update item set name = 'x' where id < 10",
    'delete from item',
  ]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 100);
    const { signal } = controller;
    await expectKind(db.query(sql, [], { signal }), 'cancelled');
  }
  // Nothing waits for the patience any more, not even behind the call.
  s3.state.isAway = false;
  expect(await keys(db)).toHaveLength(1_000);
  expect(performance.now() - began).toBeLessThan(300_000);
});

test('a warm-up tells how far it is', async () => {
  const writer = await connect(emptyFolder(), { blobs: blobs() });
  await writer.exec('create table item (id bigint primary key, name text)');
  // Several files, each of which is a step of the warm-up.
  for (let file = 0; file < 4; file += 1) {
    const id = Array.from({ length: 5_000 }, (_, at) => file * 5_000 + at);
    await writer.insertRows('item', { id, name: id.map((at) => `item ${at * 7919}`) });
    await writer.exec('optimize table item flush');
  }
  await writer.close();
  const db = await connected(emptyFolder(), { blobs: blobs({ warm: false }) });
  s3.state.delayMs = 400;
  const seen: number[] = [];
  const onProgress = (_: number, fraction: number) => void seen.push(fraction);
  const sql = 'optimize table item warm blob cache';
  const { rows } = await db.query(sql, [], { onProgress });
  s3.state.delayMs = 0;
  expect(rows).toHaveLength(1);
  expect(Math.max(...seen)).toBeGreaterThan(0);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen.every((fraction) => fraction >= 0 && fraction <= 1)).toBe(true);
});

test('footers and indexes come by themselves where there is a disk', async () => {
  await filled(20_000);
  const db = await connected(emptyFolder(), { blobs: blobs() });
  const absent = async () => {
    const sql = `select sum(bytes - local_bytes) as n from information_schema.cache
      where table_name = 'item' and index_name is not null`;
    return Number((await db.query<{ n: bigint }>(sql)).rows[0]!.n);
  };
  const all = 'select sum(bytes) as n from information_schema.cache where index_name is not null';
  await until(
    async () => Number((await db.query(all)).rows[0]!['n']) > 0 && (await absent()) === 0,
  );
  s3.requests.length = 0;
  expect((await db.query('select name from item where id = 77')).rows).toHaveLength(1);
  expect(s3.requests.length).toBeLessThanOrEqual(3);
});

test('above the limit of what waits for its upload, writing fails until the blobs are back', async () => {
  const options = { blobs: blobs({ unsentLimit: 20_000, retryForMs: 0 }), blobLag: 0 };
  const db = await connected(emptyFolder(), options);
  await db.exec('create table item (id bigint primary key, name text)');
  await db.upload();
  s3.state.isAway = true;
  const add = (id: number) => db.query('insert into item values (?, ?)', [id, 'x'.repeat(500)]);
  let failed = 0;
  for (let id = 0; id < 500 && failed === 0; id += 1) {
    await add(id).catch((error: unknown) => {
      expect(error).toMatchObject({ kind: 'unavailable' });
      failed = id;
    });
  }
  expect(failed).toBeGreaterThan(10);
  s3.state.isAway = false;
  await db.upload();
  await add(failed);
  expect(await keys(db)).toHaveLength(failed + 1);
});

test('a segment that another one has replaced is told, and nothing else is lost', async () => {
  await filled();
  const segment = [...s3.objects.keys()].find((name) => /\/seg-[^/]*$/.test(name))!;
  const kept = s3.objects.get(segment)!;
  const bytes = Buffer.from(kept.bytes);
  bytes.reverse();
  s3.objects.set(segment, { ...kept, bytes });
  const db = await connect(emptyFolder(), { blobs: blobs({ warm: false }) });
  await expectKind(db.query('select sum(length(name)) from item'), 'corrupt', {
    message: expect.stringContaining('seg-'),
  });
  await db.exec('create table other (id bigint primary key)');
  await db.query('insert into other values (1)');
  await db.upload();
  s3.objects.set(segment, kept);
  const other = await connected('memory://', { blobs: blobs() });
  expect(await keys(other)).toHaveLength(1_000);
  expect((await other.query('select * from other')).rows).toEqual([{ id: 1n }]);
  await expectKind(db.close(), 'in_use');
});

test('a valid segment of the same length in the place of another is told', async () => {
  const writer = await connect(emptyFolder(), { blobs: blobs() });
  const id = Array.from({ length: 1_000 }, (_, at) => at);
  for (const name of ['one', 'two']) {
    await writer.exec(`create table ${name} (id bigint primary key, n int)`);
    await writer.insertRows(name, { id, n: id.map((at) => (at * 7919) % 1_000) });
    await writer.exec(`optimize table ${name} full`);
  }
  await writer.close();
  const segments = [...s3.objects.keys()].filter((name) => /\/seg-[^/]*$/.test(name)).sort();
  const [one, two] = segments.slice(-2).map((name) => s3.objects.get(name)!);
  expect(one!.bytes.length).toBe(two!.bytes.length);
  expect(one!.bytes.equals(two!.bytes)).toBe(false);
  s3.objects.set(segments.at(-2)!, two!);
  const db = await connected('memory://', { blobs: blobs({ warm: false }) });
  await expectKind(db.query('select sum(n) from one'), 'corrupt', {
    message: expect.stringContaining('seg-'),
  });
  expect((await db.query('select sum(n) as n from two')).rows).toEqual([{ n: '499500' }]);
});

test('a damaged manifest is told, and the writer goes on once it is back', async () => {
  const writer = await connect(emptyFolder(), { blobs: blobs({ retryForMs: 0 }), blobLag: 0 });
  await writer.exec('create table item (id bigint primary key)');
  await writer.upload();
  const name = 'bucket/shop/manifest';
  const kept = s3.objects.get(name)!;
  s3.objects.set(name, { ...kept, bytes: Buffer.from(kept.bytes).fill(9, 8, 9) });
  await expectKind(attached(), 'corrupt');
  s3.objects.set(name, kept);
  await writer.query('insert into item values (1)');
  await writer.close();
  expect(await keys(await attached())).toEqual([1]);
});

test.for(['the right to write is taken away', 'the bucket vanishes'])(
  'while a database is open, and %s, it goes on with what is local',
  { timeout: 60_000 },
  async (what) => {
    const options = { blobs: blobs({ retryForMs: 0 }), blobLag: 0, blobPatience: 300 };
    const db = await connected(emptyFolder(), options);
    await db.exec('create table item (id bigint primary key, name text)');
    await db.query("insert into item values (1, 'one')");
    await db.upload();
    const isGone = what.includes('bucket');
    s3.state.refuse = (method) =>
      isGone ? 'NoSuchBucket' : method === 'PUT' ? 'AccessDenied' : null;
    await db.query("insert into item values (2, 'two')");
    await db.exec('optimize table item full');
    expect(await keys(db)).toEqual([1, 2]);
    await until(async () => (await db.lag())!.failure !== undefined);
    expect((await db.query('show lag')).rows[0]!['failure']).toMatch(/./);
    const failed = await db.upload().catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: expect.stringMatching(/^(io|not_found|unavailable)$/) });
    expect(String(failed)).toMatch(isGone ? /NoSuchBucket|bucket/ : /rights|AccessDenied|refus/);
    s3.state.refuse = () => null;
    await db.upload();
    expect((await db.lag())!.failure).toBeUndefined();
    expect(await keys(await attached())).toEqual([1, 2]);
  },
);

test('objects beside a database are left alone', async () => {
  await filled();
  const modified = new Date();
  const bytes = Buffer.from('not a blob of it');
  const names = ['photo.jpg', '00000001/photo.jpg'].map((name) => `bucket/shop/${name}`);
  for (const name of names) {
    s3.objects.set(name, { bytes, tag: '"1"', number: undefined, modified });
  }
  // The sixteenth writer looks at once for what others have left.
  for (let number = 2; number <= 17; number += 1) {
    await (await connect(emptyFolder(), { blobs: blobs() })).close();
  }
  expect(names.map((name) => String(s3.objects.get(name)?.bytes))).toEqual(
    names.map(() => String(bytes)),
  );
  expect(await keys(await attached())).toHaveLength(1_000);
});

test('a database whose files are here opens while its blob store is away, with what it had fetched', async () => {
  const folder = emptyFolder();
  await filled(20_000);
  // Another machine: all files are blobs only.
  const options = { blobs: blobs({ warm: false }), diskLimit: 8 << 20, blobLag: 0 };
  const first = await connect(folder, options);
  const names = (from: number) => `select name from item where id between ${from} and ${from + 9}`;
  const near = await first.query<{ name: string }>(names(100));
  await first.query('insert into item values (-1, null)');
  await first.close();

  s3.state.isAway = true;
  const again = { ...options, blobs: blobs({ warm: false, retryForMs: 0 }), blobPatience: 100 };
  const db = await connected(folder, again);
  expect((await db.query(names(100))).rows).toEqual(near.rows);
  await expectKind(db.query(names(15_000)), 'unavailable');
  await db.query("update item set name = 'offline' where id = -1");
  await until(async () => (await db.lag())!.failure !== undefined);
  s3.state.isAway = false;
  await db.upload();
  expect((await db.query(names(15_000))).rows).toHaveLength(10);

  const elsewhere = await attached();
  const { rows } = await elsewhere.query('select name from item where id = -1');
  expect(rows).toEqual([{ name: 'offline' }]);
});

test('a folder without a copy of its manifest needs the blob store to be opened', async () => {
  s3.state.isAway = true;
  const options = { blobs: blobs({ retryForMs: 0 }), blobPatience: 0 };
  const folder = emptyFolder();
  await expectKind(connect(folder, options), 'unavailable');
  s3.state.isAway = false;
  await (await connect(folder, options)).close();
  s3.state.isAway = true;
  const db = await connect(folder, options);
  await db.exec('create table item (id bigint primary key)');
  await expectKind(db.close(), 'unavailable');
  s3.state.isAway = false;
  await (await connect(folder, options)).close();
  expect(await keys(await attached())).toEqual([]);
});

test('what is beside the blobs of no database is not taken for an empty place', async () => {
  await filled(10);
  const object = s3.objects.get('bucket/shop/manifest')!;
  s3.objects.clear();
  s3.objects.set('bucket/shop/photo.jpg', object);
  const opening = connect(emptyFolder(), { blobs: blobs() });
  await expectKind(opening, 'already_exists', {
    message: expect.stringContaining('such as photo.jpg') as string,
  });
});
