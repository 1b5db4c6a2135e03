/** Node only: databases whose files are in a blob store, too, or only there. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { connect, type ConnectOptions, type Database } from 'nacredb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type Gateway } from '../../../tools/versitygw.mjs';
import { KEY, attached, blobs, emptyFolder, s3, until } from './stand-in.js';
import { connected, expectKind } from './testing.js';

let gateway: Gateway | null = null;

beforeAll(async () => {
  gateway = await startGateway();
}, 600_000);

afterAll(async () => {
  await gateway?.stop();
}, 60_000);

async function addItems(db: Database, from: number, count: number): Promise<void> {
  const id = Array.from({ length: count }, (_, at) => from + at);
  const name = id.map((id) => `item ${id} ${'x'.repeat(id % 50)}`);
  await db.insertRows('item', { id, name });
}

async function items(db: Database): Promise<number> {
  const { rows } = await db.query<{ n: bigint }>('select count(*) as n from item');
  return Number(rows[0]?.n);
}

test('with durability blob, the loss of the local files loses nothing that was answered', async () => {
  const options = { blobs: blobs(), durability: 'blob', blobLag: 3_600_000 } as const;
  const first = await connect(emptyFolder(), options);
  await first.exec('create table item (id bigint primary key, name text)');
  await first.query("insert into item values (1, 'one')");
  await first.transaction(async (tx) => {
    await tx.query("insert into item values (2, 'two')");
    await tx.query("update item set name = 'uno' where id = 1");
  });
  await addItems(first, 100, 50);
  const together = Array.from({ length: 20 }, (_, at) =>
    first.query('insert into item values (?, ?)', [1_000 + at, 'beside']),
  );
  await Promise.all(together);
  const lag = await first.lag();
  expect(lag!.uploaded).toBe(lag!.position);

  // The folder of the first is not looked at again.
  const second = await connected('memory://', options);
  expect(await items(second)).toBe(72);
  expect((await second.query('select name from item where id = 1')).rows).toEqual([
    { name: 'uno' },
  ]);
  // The first learns that it is not the writer any more, and answers no commit.
  await expectKind(first.query("insert into item values (3, 'never')"), 'in_use');
  await expectKind(first.close(), 'in_use');
  expect(await items(second)).toBe(72);
});

test('with durability blob, a commit that cannot be uploaded is not answered as one', async () => {
  const given = {
    blobs: blobs({ retryForMs: 200 }),
    durability: 'blob',
    blobPatience: 500,
  } as const;
  const db = await connect(emptyFolder(), given);
  await db.exec('create table item (id bigint primary key, name text)');
  s3.state.isAway = true;
  // An application that tries again would do it twice.
  await expectKind(db.query("insert into item values (1, 'one')"), 'unavailable', {
    mayHaveRun: true,
  });
  // It is there, and uploaded when the blob store is back.
  expect(await items(db)).toBe(1);
  s3.state.isAway = false;
  await db.query("insert into item values (2, 'two')");
  const lag = await db.lag();
  expect(lag!.uploaded).toBe(lag!.position);
  const other = await connected('memory://', given);
  expect(await items(other)).toBe(2);
  await expectKind(db.close(), 'in_use');
});

test.for(['the stand-in', 'a real server'])(
  'what one machine has written another one opens, and %s tells the first',
  async (server, context) => {
    if (server === 'a real server' && gateway === null) {
      return context.skip();
    }
    const at = server === 'a real server' ? gateway!.endpoint : s3.endpoint;
    const options = { blobs: blobs({ url: 's3://bucket/js/shop', endpoint: at }), blobLag: 50 };
    // Closing it fails in the end.
    const first = await connect(emptyFolder(), options);
    await first.exec('create table item (id bigint primary key, name text)');
    await addItems(first, 0, 5_000);
    await first.exec('optimize table item flush');
    await first.query("insert into item values (-1, 'the last one')");
    await first.upload();
    const lag = await first.lag();
    expect(lag!.uploaded).toBe(lag!.position);
    expect(lag!.sinceMs).toBeLessThan(1);
    expect(Math.abs(lag!.uploadedAt.getTime() - Date.now())).toBeLessThan(60_000);

    const second = await connected(emptyFolder(), options);
    expect(await items(second)).toBe(5_001);
    expect((await second.query('select name from item where id = -1')).rows).toEqual([
      { name: 'the last one' },
    ]);
    await second.query("insert into item values (-2, 'of the second')");
    await second.close();
    // The first one learns of it with its next upload.
    await first.query("insert into item values (-3, 'too late')").catch(() => {});
    await expectKind(first.upload(), 'in_use');
    await expectKind(first.query("insert into item values (-4, 'never')"), 'in_use');
    await expectKind(first.close(), 'in_use');

    const third = await connected('memory://', options);
    expect(await items(third)).toBe(5_002);
  },
);

test('with a key of the application, the blob store has nothing that can be read', async () => {
  const encryptionKey = crypto.getRandomValues(new Uint8Array(32));
  const folder = emptyFolder();
  const first = await connect(folder, { blobs: blobs({ encryptionKey }), blobLag: 0 });
  await first.exec('create table secret (id bigint primary key, name text)');
  const id = Array.from({ length: 20_000 }, (_, at) => at);
  await first.insertRows('secret', { id, name: id.map((id) => `a word that counts ${id}`) });
  await first.exec('optimize table secret flush');
  await first.query("insert into secret values (-1, 'the last word')");
  await first.close();
  expect(s3.objects.size).toBeGreaterThan(2);
  for (const { bytes } of s3.objects.values()) {
    expect(Buffer.from(bytes).toString('latin1')).not.toMatch(/secret|word|counts/);
  }

  const found = 'select name from secret where id in (-1, 777) order by id';
  const rows = [{ name: 'the last word' }, { name: 'a word that counts 777' }];
  const second = await connected('memory://', { blobs: blobs({ encryptionKey }) });
  expect((await second.query(found)).rows).toEqual(rows);
  // A key that scripts of the page cannot read.
  const key = await crypto.subtle.importKey('raw', encryptionKey, 'HKDF', false, ['deriveBits']);
  const { endpoint } = s3;
  const reader = await connected('s3://bucket/shop', {
    blobs: { endpoint, credentials: KEY, encryptionKey: key },
  });
  expect((await reader.query(found)).rows).toEqual(rows);

  const other = crypto.getRandomValues(new Uint8Array(32));
  for (const [encryptionKey, why] of [
    [undefined, 'is encrypted'],
    [other, 'another key'],
  ] as const) {
    const given = { blobs: blobs({ encryptionKey }) };
    await expect(connected('memory://', given)).rejects.toMatchObject({
      kind: 'io',
      message: expect.stringContaining(why),
    });
  }
  await expectKind(
    connected('memory://', { blobs: blobs({ encryptionKey: new Uint8Array(31) }) }),
    'type',
  );
});

test('commits are uploaded by themselves, soon', async () => {
  const db = await connected(emptyFolder(), { blobs: blobs(), blobLag: 20 });
  await db.exec('create table item (id bigint primary key, name text)');
  for (let id = 0; id < 3; id++) {
    await db.query('insert into item values (?, ?)', [id, 'x']);
    await until(async () => {
      const lag = await db.lag();
      return lag!.uploaded === lag!.position;
    });
  }
  const before = s3.requests.length;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(s3.requests.length).toBe(before);
});

test('a table 20 times as large as the disk limit works', { timeout: 60_000 }, async () => {
  const [folder, limit] = [emptyFolder(), 250_000];
  const options = { blobs: blobs(), blobLag: 0, diskLimit: limit, cacheBytes: 100_000 };
  const db = await connected(folder, options);
  await db.exec('create table item (id bigint primary key, name text)');
  let state = 1;
  const random = () => (state = (state * 48_271) % 2_147_483_647).toString(36);
  for (let from = 0; from < 200_000; from += 20_000) {
    const id = Array.from({ length: 20_000 }, (_, at) => from + at);
    const name = id.map(() => `${random()}${random()}${random()}${random()}${random()}${random()}`);
    await db.insertRows('item', { id, name });
  }
  await db.exec('optimize table item flush');
  await db.upload();
  const size = [...s3.objects]
    .filter(([key]) => key.includes('seg-'))
    .reduce((sum, [, { bytes }]) => sum + bytes.length, 0);
  expect(size).toBeGreaterThan(20 * limit);
  const segments = () =>
    fs
      .readdirSync(folder)
      .filter((name) => name.startsWith('seg-') || name === 'blocks')
      .reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
  await until(async () => segments() <= 1.1 * limit);
  const { rows } = await db.query('select count(*) as n, count(distinct name) as d from item');
  expect(rows).toEqual([{ n: 200_000n, d: 200_000n }]);
  for (let id = 7; id < 200_000; id += 9_999) {
    const found = await db.query<{ id: bigint }>('select id from item where id = ?', [id]);
    expect(found.rows).toEqual([{ id: BigInt(id) }]);
  }
  await until(async () => segments() <= 1.1 * limit);
  await db.close();
});

test('a blob store alone is read, and not written', async () => {
  await expectKind(attached(), 'not_found');
  const writer = await connected('memory://', { blobs: blobs() });
  await writer.exec('create table item (id bigint primary key, name text)');
  await addItems(writer, 0, 50_000);
  await writer.exec('optimize table item flush');
  await writer.upload();

  const before = s3.requests.length;
  const reader = await attached();
  expect(await items(reader)).toBe(50_000);
  expect((await reader.query('select id from item where id = 777')).rows).toEqual([{ id: 777n }]);
  await expectKind(reader.query("insert into item values (-1, 'x')"), 'unsupported');
  await expectKind(reader.exec('create table other (a int)'), 'unsupported');
  await expectKind(reader.export(), 'unsupported');
  await reader.close();
  const own = s3.requests.slice(before);
  const changes = own.filter((request) => !request.startsWith('GET '));
  expect(changes.filter((request) => !request.includes('/leases/'))).toEqual([]);
});

test('a reader follows its writer, from one consistent state to the next', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 0 });
  await writer.exec(
    'create table item (id bigint primary key, name text); create table total (id int primary key, n bigint)',
  );
  await writer.query('insert into total values (1, 0)');
  await writer.upload();
  const reader = await attached();
  expect(await reader.refresh()).toBe(false);
  expect(await writer.refresh()).toBe(false);
  let shown = 0;
  for (let round = 1; round <= 20; round++) {
    await writer.transaction(async (tx) => {
      await tx.query('insert into item values (?, ?)', [round, `round ${round}`]);
      await tx.query('update total set n = n + 1 where id = 1');
    });
    if (round % 5 === 0) {
      await writer.exec('optimize table item flush');
    }
    if (round % 3 === 0) {
      await writer.upload();
      expect(await reader.refresh()).toBe(true);
      shown = round;
    }
    const { rows } = await reader.query<{ n: bigint; total: bigint }>(
      'select count(*) as n, max(total.n) as total from item, total',
    );
    expect(Number(rows[0]!.n)).toBe(Number(rows[0]!.total ?? 0n));
    expect(await items(reader)).toBeGreaterThanOrEqual(shown);
  }
  await writer.upload();
  await reader.refresh();
  const [ahead, behind] = [await writer.lag(), await reader.lag()];
  // The writer may have uploaded more meanwhile: background work writes its log, too.
  expect(behind!.position).toBe(behind!.uploaded);
  expect(behind!.position).toBeLessThanOrEqual(ahead!.uploaded);
  expect(behind!.uploadedAt.getTime()).toBeLessThanOrEqual(ahead!.uploadedAt.getTime());
});

test('with follow a reader looks by itself, and its live queries notice', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 0 });
  await writer.exec('create table item (id bigint primary key, name text)');
  await writer.upload();
  const reader = await attached({ follow: 20 });
  const seen: number[] = [];
  const live = await reader.live.query('select count(*) as n from item', [], ({ rows }) => {
    seen.push(Number(rows[0]!['n']));
  });
  await addItems(writer, 0, 7);
  await until(async () => seen.at(-1) === 7);
  expect((await reader.lag())!.sinceMs).toBeLessThan(5_000);
  await live.unsubscribe();
});

test('a reader waits for what its writer has committed', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 300 });
  await writer.exec('create table item (id bigint primary key, name text)');
  await writer.upload();
  const reader = await attached();
  for (let round = 1; round <= 3; round++) {
    await addItems(writer, round * 10, 10);
    const { position } = (await writer.lag())!;
    expect((await reader.lag())!.position).toBeLessThan(position);
    await reader.waitForPosition(position);
    expect(await items(reader)).toBe(round * 10);
    await writer.waitForPosition(position);
  }
  const { position } = (await writer.lag())!;
  await expectKind(reader.waitForPosition(position + 1e9, { timeoutMs: 60 }), 'unavailable');
  const waiting = reader.waitForPosition(position + 1e9, { signal: AbortSignal.timeout(60) });
  await expectKind(waiting, 'cancelled');
  for (const wrong of [-1, 0.5, NaN, '1' as never]) {
    await expectKind(reader.waitForPosition(wrong), 'type');
  }
  await expectKind(reader.waitForPosition(1, { timeoutMs: -1 }), 'type');
  const alone = await connected('memory://');
  await expectKind(alone.waitForPosition(1), 'unsupported');
});

test('a transaction of a reader keeps what it sees', async () => {
  const writer = await connected(emptyFolder(), { blobs: blobs(), blobLag: 0 });
  await writer.exec('create table item (id bigint primary key, name text)');
  await addItems(writer, 0, 10);
  await writer.upload();
  const reader = await attached();
  await reader.transaction(async (tx) => {
    const count = async () => (await tx.query('select count(*) as n from item')).rows;
    expect(await count()).toEqual([{ n: 10n }]);
    await writer.exec('delete from item where id < 5');
    await writer.upload();
    await reader.refresh();
    expect(await count()).toEqual([{ n: 10n }]);
    expect(await items(reader)).toBe(5);
  });
});

test('credentials are asked for when they are needed, and again when they expire', async () => {
  let [valid, asked] = ['one', 0];
  s3.state.refuse = (_, __, token) => (token === valid ? null : 'ExpiredToken');
  const credentials = async () => {
    asked++;
    await new Promise((resolve) => setTimeout(resolve, 5));
    return { ...KEY, sessionToken: valid };
  };
  const db = await connected(emptyFolder(), { blobs: blobs({ credentials }) });
  await db.exec('create table item (id bigint primary key, name text)');
  await db.upload();
  expect(asked).toBe(1);
  valid = 'two';
  await addItems(db, 0, 10);
  await db.upload();
  expect(asked).toBe(2);
  await db.close();
  await expectKind(
    connect('s3://bucket/shop', {
      blobs: blobs({ credentials: { ...KEY, sessionToken: 'one' } }),
    }),
    'io',
    { hint: expect.stringContaining('session token') },
  );
  const failing = () => Promise.reject(new Error('signed out'));
  const failed = connect('s3://bucket/shop', { blobs: blobs({ credentials: failing }) });
  await expect(failed).rejects.toThrow('signed out');
  await expectKind(failed, 'io');
});

test('an application signs its requests itself', async () => {
  s3.state.refuse = (_, key) => (key === 'presigned' ? null : 'AccessDenied');
  const asked: string[] = [];
  const presign = ({ method, url }: { method: string; url: string }) => {
    asked.push(method);
    const signed = new URL(url);
    signed.searchParams.set('X-Amz-Credential', 'presigned/20260101');
    return signed.href;
  };
  const options = { blobs: blobs({ credentials: undefined, presign }) };
  const db = await connected('memory://', options);
  await db.exec('create table item (id bigint primary key, name text)');
  await addItems(db, 0, 10);
  await db.close();
  expect(new Set(asked)).toEqual(new Set(['GET', 'PUT']));
  expect(await items(await connected('memory://', options))).toBe(10);
});

test('a load that is aborted once its rows are published does not deny them', async () => {
  const given = {
    blobs: blobs({ retryForMs: 200 }),
    durability: 'blob',
    blobPatience: 2_000,
  } as const;
  const db = await connected(emptyFolder(), given);
  await db.exec('create table item (id bigint primary key, name text)');
  s3.state.isAway = true;
  const late = new AbortController();
  const failing = db.insertRows('item', [{ id: 1, name: 'one' }], late);
  failing.catch(() => {});
  await until(async () => (await items(db)) === 1);
  late.abort();
  await expectKind(failing, 'unavailable', { mayHaveRun: true });
  s3.state.isAway = false;
  await db.upload();

  // Where the upload is in time, the load has succeeded.
  s3.state.delayMs = 100;
  const slow = new AbortController();
  const loaded = db.insertRows('item', [{ id: 2, name: 'two' }], slow);
  await until(async () => (await items(db)) === 2);
  slow.abort();
  expect(await loaded).toBe(1);
});

test('while the blobs are away what is local goes on', { timeout: 60_000 }, async () => {
  const options = { blobs: blobs({ retryForMs: 200 }), blobLag: 0 };
  const db = await connected(emptyFolder(), options);
  await db.exec('create table item (id bigint primary key, name text)');
  await db.upload();
  s3.state.isAway = true;
  await addItems(db, 0, 10);
  await db.query("update item set name = 'changed' where id = 3");
  expect(await items(db)).toBe(10);
  const lag = await db.lag();
  expect(lag!.uploaded).toBeLessThan(lag!.position);
  s3.state.isAway = false;
  await until(async () => {
    const { uploaded, position } = (await db.lag())!;
    return uploaded === position;
  });
  await db.close();
});

test('without retries and patience, opening fails at once while the blobs are away', async () => {
  s3.state.isAway = true;
  const began = performance.now();
  const options = { blobs: blobs({ retryForMs: 0 }), blobPatience: 0 };
  await expectKind(connect('memory://', options), 'unavailable');
  expect(performance.now() - began).toBeLessThan(5_000);
});

test('options that are none are refused, and nothing is opened', async () => {
  const wrong: [ConnectOptions, string?][] = [
    [{ diskLimit: 1_000_000 }],
    [{ blobLag: 10 }],
    [{ blobPatience: 10 }],
    [{ durability: 'blob' }],
    [{ follow: 10 }],
    [{ blobs: blobs(), follow: 10 }],
    [{ blobs: blobs(), diskLimit: 0 }],
    [{ blobs: blobs(), blobLag: -1 }],
    [{ blobs: blobs(), blobPatience: NaN }],
    [{ blobs: { endpoint: s3.endpoint } }],
    [{ blobs: blobs({ region: 3 as never }) }],
    [{ blobs: blobs({ area: 'x' } as never) }],
    [{ blobs: blobs({ credentials: { accessKeyId: 'x' } as never }) }],
    [{ blobs: blobs({ presign: () => 'x' }) }],
    [{ blobs: blobs({ encryption: 'none' as never }) }],
    [{ blobs: 'gs://bucket/x' }, 'unsupported'],
    [{ blobs: 's3://' }, 'io'],
    [{ blobs: blobs(), import: new Blob([]) }, 'unsupported'],
  ];
  for (const [options, kind = 'type'] of wrong) {
    await expectKind(connect('memory://', options), kind as 'type');
  }
  await expectKind(connect('s3://bucket/a', { blobs: 's3://bucket/b' }), 'type');
  expect(s3.requests).toEqual([]);
});

test('errors name what is wrong with the blobs', async () => {
  const other = await connected('memory://', { blobs: blobs() });
  await other.exec('create table item (id bigint primary key)');
  await other.close();
  const folder = emptyFolder();
  const own = await connected(folder);
  await own.exec('create table item (id bigint primary key)');
  await own.close();
  await expectKind(connect(folder, { blobs: blobs() }), 'already_exists', {
    hint: expect.stringContaining('empty'),
  });
  // Its own data are as they were.
  expect(await items(await connected(folder))).toBe(0);
  s3.objects.set('bucket/foreign/manifest', {
    ...s3.objects.get('bucket/shop/manifest')!,
    bytes: Buffer.from('hello'),
  });
  await expectKind(
    connect('s3://bucket/foreign', { blobs: { endpoint: s3.endpoint, credentials: KEY } }),
    'corrupt',
  );
  s3.state.refuse = (method) => (method === 'PUT' ? 'AccessDenied' : null);
  await expectKind(connect('memory://', { blobs: blobs() }), 'io', {
    hint: expect.stringContaining('rights'),
  });
});

test('what was warmed is read without the blob store', async () => {
  const writer = await connect(emptyFolder(), { blobs: blobs() });
  await writer.exec('create table item (id bigint primary key, name text)');
  await addItems(writer, 0, 20_000);
  await writer.exec('optimize table item full');
  await writer.close();

  const db = await attached();
  const warm = 'optimize table item warm blob cache';
  const first = (await db.query<{ fetched_bytes: bigint; local_bytes: bigint }>(warm)).rows[0]!;
  expect(Number(first.fetched_bytes)).toBeGreaterThan(100_000);
  const again = (await db.query(warm)).rows[0]!;
  expect(again).toEqual({
    fetched_bytes: 0n,
    local_bytes: first.fetched_bytes + first.local_bytes,
  });
  const cache = await db.query('show cache');
  expect(cache.rows.every((row) => row['bytes'] === row['local_bytes'])).toBe(true);
  s3.state.isAway = true;
  const found = await db.query('select count(*) as n, sum(length(name)) as l from item');
  expect(found.rows[0]?.['n']).toBe(20_000n);
  s3.state.isAway = false;
});
