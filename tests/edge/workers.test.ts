/** The package in Cloudflare's runtime: databases in memory, and in the storage of Durable Objects. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { connect } from 'nacredb';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';
import { Workers } from '../../tools/workers.mjs';

/** An object that only has sockets leaves memory after ten seconds. */
const HIBERNATES_MS = 12_000;

let folder: string;
let workers: Workers;
let tenants = 0;

/** A tenant that nothing was written to. */
const fresh = (): string => `tenant-${tenants++}`;

const rows = async (
  tenant: string | null,
  ...statements: [string, unknown[]?][]
): Promise<unknown> => {
  const { status, body } = await workers.send(tenant, statements);
  expect(body).toBeInstanceOf(Array);
  expect(status).toBe(200);
  return (body as unknown[]).at(-1);
};

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-edge-'));
  workers = await Workers.start(folder);
});

afterAll(async () => {
  await workers.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

test('a Worker runs a database in memory', async () => {
  expect(
    await rows(
      null,
      ['create table t (id bigint primary key, doc json)'],
      [`insert into t select n, json_object('n', n) from generate_series(1, 1000) as g(n)`],
      [`select sum((doc->>'n')::bigint) as n from t`],
    ),
  ).toEqual([{ n: '500500' }]);
});

test.for(['plain', 'sealed'])(
  'a Worker reads a bucket that is bound to it, and writes one from memory (%s)',
  async (prefix) => {
    const key = prefix === 'sealed' ? Array.from({ length: 32 }, (_, i) => i) : undefined;
    const blobs = { prefix, key };
    const sent = (statements: [string][], options: object) =>
      workers.send(null, statements, {
        at: '/bucket',
        headers: { options: JSON.stringify({ blobs, ...options }) },
      });
    const written = await sent(
      [
        ['create table t (id bigint primary key, name text)'],
        ["insert into t select n, repeat('x', 20) from generate_series(1, 20000) as g(n)"],
        ['optimize table t flush'],
      ],
      {},
    );
    expect(written).toMatchObject({ status: 200, body: [{}, {}, {}] });
    const read = await sent([['select id from t where id = 19999']], { readOnly: true });
    expect(read.body).toEqual([[{ id: 19_999 }]]);
    const again = await sent([["insert into t values (0, 'of the next')"]], {});
    expect(again.status).toBe(200);
    const count = await sent([['select count(*) as n from t']], { readOnly: true });
    expect(count.body).toEqual([[{ n: 20_001 }]]);
    const other = { blobs: { ...blobs, key: Array.from({ length: 32 }, () => 7) } };
    expect((await sent([], other)).body).toMatchObject({ kind: 'io' });
    for (const wrong of [{ bucket: {} }, { prefix: 7 }, { key: [1] }, { region: 'x' }]) {
      const refused = await sent([], { blobs: { ...blobs, ...wrong } });
      expect(refused.body).toMatchObject({ kind: 'type' });
    }
  },
);

test('a bucket that answers an old manifest has nothing overwritten', async () => {
  const sent = (statements: [string][], options: object = {}) =>
    workers.send(null, statements, {
      at: '/bucket',
      headers: {
        options: JSON.stringify({ blobs: { prefix: 'old' }, blobPatience: 500, ...options }),
      },
    });
  const all: [string] = ['select id from t order by id'];
  await sent([['create table t (id bigint primary key)'], ['insert into t values (1)']]);
  // The manifest of now is answered from now on.
  const read = { isForgetful: true, readOnly: true };
  expect((await sent([all], read)).body).toEqual([[{ id: 1 }]]);
  expect((await sent([['insert into t values (2)']])).status).toBe(200);
  const refused = await sent([['insert into t values (3)']], { isForgetful: true });
  expect(refused).toMatchObject({ status: 500, body: { kind: 'in_use' } });
  expect((await sent([all], { readOnly: true })).body).toEqual([[{ id: 1 }, { id: 2 }]]);
});

test.for(['kept', 'kept-sealed'])(
  'what a Worker has read is kept in the cache of its place (%s)',
  async (prefix) => {
    const key = prefix === 'kept' ? undefined : Array.from({ length: 32 }, (_, i) => i);
    const sent = async (statements: [string][], options: object) =>
      (
        await workers.send(null, statements, {
          at: '/bucket',
          headers: { options: JSON.stringify({ blobs: { prefix, key }, ...options }) },
        })
      ).body;
    await sent(
      [
        ['create table t (id bigint primary key, name text)'],
        ['insert into t select n, md5(n::text) from generate_series(1, 40000) as g(n)'],
        ['optimize table t flush'],
      ],
      {},
    );
    const read = (cached: unknown) =>
      sent([['select count(*) as n, min(name) as least from t where id > 20000']], {
        readOnly: true,
        cached,
      });
    const [plain, first, second] = [await read(null), await read(true), await read(true)];
    const { ranges, results } = plain as { ranges: number; results: unknown };
    expect(ranges).toBeGreaterThan(2);
    expect(first).toEqual({ ranges: expect.any(Number), results });
    expect((first as { ranges: number }).ranges).toBeGreaterThan(0);
    expect(second).toEqual({ ranges: 0, results });
  },
);

test('a Worker reads a blob store, and writes one from memory', async () => {
  const s3 = await startS3();
  try {
    const credentials = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
    const blobs = { url: 's3://bucket/edge', endpoint: s3.endpoint, credentials };
    const sent = (statements: [string][], options: object) =>
      workers.send(null, statements, {
        at: '/blobs',
        headers: { options: JSON.stringify({ blobs, ...options }) },
      });
    const written = await sent(
      [
        ['create table t (id bigint primary key, name text)'],
        ["insert into t select n, repeat('x', 20) from generate_series(1, 20000) as g(n)"],
        ['optimize table t flush'],
        ['select count(*) as n from t'],
      ],
      {},
    );
    expect(written.body).toMatchObject([{}, {}, {}, [{ n: 20_000 }]]);
    const read = await sent([['select id from t where id = 19999']], { readOnly: true });
    expect(read.body).toEqual([[{ id: 19_999 }]]);
    const refused = await sent([['delete from t']], { readOnly: true });
    expect(refused.body).toMatchObject({ kind: 'unsupported' });
    for (const wrong of [{ blobs: {} }, { blobs, cache: 7 }, { blobs: undefined, cache: {} }]) {
      expect((await sent([], wrong)).body).toMatchObject({ kind: 'type' });
    }
    const db = await connect('s3://bucket/edge', { blobs });
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 20_000n }]);
    await db.close();
  } finally {
    await s3.stop();
  }
});

describe('a Durable Object with a bucket', () => {
  const note = 'create table note (id bigint primary key, text text)';
  const many = `insert into note
    select n, md5(n::text) || md5((n + 1)::text) from generate_series(1, 30000) as g(n)`;

  /** Rows of a prefix of the bucket, as a Worker reads them. */
  const read = async (prefix: string, sql: string, position?: number): Promise<unknown> => {
    const options = JSON.stringify({ blobs: { prefix }, readOnly: true, position });
    return (await workers.send(null, [[sql]], { at: '/bucket', headers: { options } })).body;
  };

  test('uploads what it commits, for Workers that read it', async () => {
    const tenant = 'small.read.1';
    await rows(tenant, [note], ["insert into note values (1, 'first')"]);
    await workers.send(tenant, [], { at: '/upload' });
    expect(await read('read', 'select * from note')).toEqual([[{ id: 1, text: 'first' }]]);
    await rows(tenant, ["insert into note values (2, 'by itself')"]);
    const { position } = (await workers.send(tenant, [], { at: '/lag' })).body as {
      position: number;
    };
    expect(await read('read', 'select count(*) as n from note', position)).toEqual([[{ n: 2 }]]);
  });

  test('keeps a part of the files, and fetches the others', async () => {
    const tenant = 'small.cold.1';
    const stored = async (): Promise<number> =>
      ((await workers.send(tenant, [], { at: '/storage' })).body as { bytes: number }).bytes;
    const fill = many.replace('30000', '150000');
    await rows(tenant, [note], [fill], ['optimize table note flush']);
    const all = await stored();
    await workers.send(tenant, [], { at: '/upload' });
    await vi.waitFor(async () => expect(await stored()).toBeLessThan(all / 3), {
      timeout: 30_000,
      interval: 200,
    });
    expect(await rows(tenant, ['select count(*) as n, min(text) as least from note'])).toEqual([
      { n: 150_000, least: expect.stringMatching(/^0000/) },
    ]);
    expect(await rows(tenant, ['select id from note where id = 17000'])).toEqual([{ id: 17_000 }]);
  });

  test('has a successor, whose commits it does not overwrite', async () => {
    const [first, second] = ['small.moved.1', 'small.moved.2'];
    await rows(first, [note], ["insert into note values (1, 'of the first')"]);
    await workers.send(first, [], { at: '/upload' });
    expect(await rows(second, ['select text from note'])).toEqual([{ text: 'of the first' }]);
    await rows(second, ["insert into note values (2, 'of the second')"]);
    await workers.send(second, [], { at: '/upload' });
    await workers.send(first, [["insert into note values (3, 'lost')"]]);
    const refused = await workers.send(first, [], { at: '/upload' });
    expect(refused.body).toMatchObject({ kind: 'in_use' });
    expect(await read('moved', 'select id from note order by id')).toEqual([
      [{ id: 1 }, { id: 2 }],
    ]);
  });

  test('and a process beside it replace each other as the writer of their blobs', async () => {
    const s3 = await startS3();
    try {
      const headers = { endpoint: s3.endpoint };
      const sent = (tenant: string, ...statements: [string][]) =>
        workers.send(tenant, statements, { headers });
      const upload = (tenant: string) => workers.send(tenant, [], { at: '/upload', headers });
      const fenced = { kind: 'in_use', sqlstate: '55N01' };
      const [first, second] = ['small.shared.1', 'small.shared.2'];
      await sent(first, [note], ["insert into note values (1, 'of the object')"]);
      await upload(first);
      const credentials = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
      const blobs = { url: 's3://bucket/shared', endpoint: s3.endpoint, credentials };
      const db = await connect('memory://', { blobs });
      await db.exec("insert into note values (2, 'of the process')");
      await db.upload();
      await sent(first, ["insert into note values (3, 'lost')"]);
      expect((await upload(first)).body).toMatchObject(fenced);
      const after = await sent(first, ["insert into note values (4, 'lost')"]);
      expect(after.body).toMatchObject(fenced);
      const all: [string] = ['select id, text from note order by id'];
      const rows = [
        { id: 1, text: 'of the object' },
        { id: 2, text: 'of the process' },
      ];
      expect((await sent(second, all)).body).toEqual([rows]);
      await sent(second, ["insert into note values (5, 'of the next')"]);
      await upload(second);
      await db.exec("insert into note values (6, 'lost')").catch(() => {});
      await expect(db.upload()).rejects.toMatchObject(fenced);
      await db.close().catch(() => {});
      const reader = await connect('s3://bucket/shared', { blobs });
      expect((await reader.query('select id from note order by id')).rows).toEqual([
        { id: 1n },
        { id: 2n },
        { id: 5n },
      ]);
      await reader.close();
    } finally {
      await s3.stop();
    }
  });

  test('comes back by its alarm to upload what it has committed', async () => {
    const tenant = 'waking.alarm.1';
    await rows(tenant, [note], ["insert into note values (1, 'kept')"]);
    const before = (await workers.send(tenant, [], { at: '/lag' })).body;
    expect(before).toMatchObject({ position: expect.any(Number) });
    const { position, uploaded } = before as { position: number; uploaded: number };
    expect(uploaded).toBeLessThan(position);
    // It is not called again.
    await workers.send(tenant, [], { at: '/leave' });
    await vi.waitFor(
      async () =>
        expect(await read('alarm', 'select text from note')).toEqual([[{ text: 'kept' }]]),
      { timeout: 60_000, interval: 500 },
    );
  });

  test('needs an alarm', async () => {
    const { body } = await workers.send('deaf.none.1', [[note]]);
    expect(body).toMatchObject({
      kind: 'unsupported',
      message: expect.stringContaining('alarm()'),
    });
  });

  test('shares its isolate with others', async () => {
    const tenants = Array.from({ length: 8 }, (_, n) => `small.many${n}.1`);
    await Promise.all(tenants.map((tenant) => rows(tenant, [note], [many])));
    await Promise.all(tenants.map((tenant) => workers.send(tenant, [], { at: '/upload' })));
    const sums = await Promise.all(
      tenants.map((_, n) => read(`many${n}`, 'select count(*) as n from note')),
    );
    expect(sums).toEqual(tenants.map(() => [[{ n: 30_000 }]]));
  });
});

describe('a Durable Object', () => {
  const note = 'create table note (id bigint primary key, text text)';

  test('keeps what was written when the runtime ends', async () => {
    const tenant = fresh();
    await rows(tenant, [note], ['insert into note values (?, ?)', [1, 'first']]);
    const many =
      'insert into note select n, repeat(n::text, 20) from generate_series(2, 30000) as g(n)';
    await rows(tenant, [many], ['optimize table note flush'], ['delete from note where id = 2']);
    await workers.stop();
    workers = await Workers.start(folder);
    expect(await rows(tenant, ['select count(*) as n, min(text) as least from note'])).toEqual([
      { n: 29_999, least: '10000'.repeat(20) },
    ]);
    expect(await rows(tenant, ['select text from note where id = 29999'])).toEqual([
      { text: '29999'.repeat(20) },
    ]);
  });

  test('has a database of its own', async () => {
    const [one, other] = [fresh(), fresh()];
    await rows(one, [note], ['insert into note values (1, ?)', ['one']]);
    await rows(other, [note], ['insert into note values (1, ?)', ['other']]);
    expect(await rows(one, ['select text from note'])).toEqual([{ text: 'one' }]);
    expect(await rows(other, ['select text from note'])).toEqual([{ text: 'other' }]);
  });

  test('runs transactions', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const insert: [string, unknown[]] = ['insert into note values (?, ?)', [1, 'x']];
    const failed = await workers.send(tenant, [insert], {
      at: '/together',
      headers: { fail: 'yes' },
    });
    expect(failed.body).toMatchObject({ message: 'the application fails' });
    expect(await rows(tenant, ['select * from note'])).toEqual([]);
    expect((await workers.send(tenant, [insert], { at: '/together' })).status).toBe(200);
    expect(await rows(tenant, ['select * from note'])).toEqual([{ id: 1, text: 'x' }]);
  });

  test('answers a broken rule with its error', async () => {
    const tenant = fresh();
    await rows(tenant, [note], ['insert into note values (1, ?)', ['x']]);
    const { body } = await workers.send(tenant, [['insert into note values (1, ?)', ['y']]]);
    expect(body).toMatchObject({ name: 'NacreError', kind: 'constraint' });
  });

  test('has its database open once', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    for (const at of ['/twice', '/twice-by-parts']) {
      const { body } = await workers.send(tenant, [], { at });
      expect(body).toMatchObject({ kind: 'in_use' });
    }
    const again = await workers.send(tenant, [['select count(*) as n from note']], {
      at: '/again',
    });
    expect(again.body).toEqual([[{ n: 0 }]]);
  });

  test('answers others while a long statement runs', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    let isRunning = true;
    const long = rows(tenant, [
      'select sum(n % 7)::double as s from generate_series(1, 30000000) as g(n)',
    ]).finally(() => (isRunning = false));
    await new Promise((resolve) => setTimeout(resolve, 100));
    let answered = 0;
    while (isRunning) {
      expect((await workers.send(tenant, [], { at: '/storage' })).status).toBe(200);
      answered++;
    }
    expect(await long).toEqual([{ s: 89_999_997 }]);
    expect(answered).toBeGreaterThan(3);
  });

  test('rolls back the transaction of a request whose client is gone', async () => {
    const tenant = fresh();
    await rows(tenant, [note], ["insert into note values (1, 'kept')"]);
    const leave = workers.begin(tenant, '/together', {
      first: "update note set text = 'half' where id = 1",
    });
    await vi.waitFor(async () => {
      expect((await workers.send(tenant, [], { at: '/reached' })).body).toBe(true);
    }, 5_000);
    leave();
    await rows(tenant, ["update note set text = text || ', and changed' where id = 1"]);
    expect(await rows(tenant, ['select text from note'])).toEqual([{ text: 'kept, and changed' }]);
  });

  test('may be called again inside a transaction', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const inside = (...statements: [string][]) =>
      workers.send(tenant, statements, {
        at: '/again-inside',
        headers: { first: "insert into note values (1, 'outside')" },
      });
    const [seen, all] = (await inside(
      ["insert into note values (2, 'inside')"],
      ['select id from note'],
    ).then(({ body }) => body)) as unknown[];
    expect(seen).toEqual([[], [{ id: 2 }]]);
    expect(all).toEqual([{ id: 1, text: 'outside' }]);
    await rows(tenant, ['delete from note']);
    // What it waits for is its own caller, until its time is over.
    const stuck = (await inside(["insert into note values (1, 'inside')"])).body;
    expect(stuck).toEqual([
      expect.objectContaining({ kind: 'lock_timeout' }),
      [{ id: 1, text: 'outside' }],
    ]);
    expect(await rows(tenant, ['select text from note'])).toEqual([{ text: 'outside' }]);
  }, 30_000);

  test('tells when its storage is full, and goes on when there is room', async () => {
    const tenant = fresh();
    await rows(tenant, [note], ["insert into note values (1, 'kept')"]);
    const many: [string] = [
      'insert into note select n, repeat(n::text, 20) from generate_series(2, 50000) as g(n)',
    ];
    const full = await workers.send(tenant, [many], { headers: { room: '100000' } });
    expect(full.body).toMatchObject({ kind: 'limit', message: expect.stringContaining('is full') });
    expect(await rows(tenant, ['select text from note'])).toEqual([{ text: 'kept' }]);
    const room = await workers.send(tenant, [many], { headers: { room: 'Infinity' } });
    expect(room.status).toBe(200);
    await workers.stop();
    workers = await Workers.start(folder);
    expect(await rows(tenant, ['select count(*) as n from note'])).toEqual([{ n: 50_000 }]);
  });

  test('writes nothing aside for a statement that needs more than its memory', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const sql = `select count(*) as n from (select n, repeat('x', 1000) || n::text as t
      from generate_series(1, 300000) as g(n) order by t) as s where t > ''`;
    const { body } = await workers.send(tenant, [[sql]]);
    expect(body).toMatchObject({ kind: 'limit' });
    expect(await rows(tenant, ['select count(*) as n from note'])).toEqual([{ n: 0 }]);
  });

  test('sends the answers of a live query to a socket', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const received: string[] = [];
    const close = await workers.listen(tenant, '/live', (text) => received.push(text));
    await vi.waitFor(() => expect(received).toEqual(['0']));
    await rows(tenant, ['insert into note values (1, ?)', ['x']]);
    await vi.waitFor(() => expect(received).toEqual(['0', '1']));
    close();
  });

  test('leaves memory while its sockets stay, and sends them what changes then', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const received: string[] = [];
    const close = await workers.listen(tenant, '/live', (text) => received.push(text));
    await vi.waitFor(() => expect(received).toEqual(['0']));
    const made = async () => (await workers.send(tenant, [], { at: '/made' })).body;
    expect(await made()).toBe(1);
    // Every call would keep it in memory.
    await new Promise((resolve) => setTimeout(resolve, HIBERNATES_MS));
    await rows(tenant, ['insert into note values (1, ?)', ['x']]);
    expect(await made()).toBe(2);
    await vi.waitFor(() => expect(received.at(-1)).toBe('1'));
    close();
  }, 30_000);

  test('says where its database is', async () => {
    const tenant = fresh();
    await rows(tenant, [note]);
    const { body } = await workers.send(tenant, [], { at: '/storage' });
    expect(body).toMatchObject({ place: 'durable-object', persisted: true });
  });

  test('may end in the middle of a call, and has all of a commit or nothing', async () => {
    const [tenant, other] = [fresh(), fresh()];
    await rows(tenant, [note]);
    await rows(other, [note]);
    for (let calls = 1; calls <= 6; calls++) {
      const insert: [string][] = [[`insert into note values (${calls}, 'x'), (${-calls}, 'x')`]];
      const headers = { 'abort-after': String(calls) };
      const answered = await workers.send(tenant, insert, { headers }).catch(() => ({ status: 0 }));
      const back = await vi.waitFor(() => rows(tenant, ['select id from note']), 5_000);
      const ids = (back as { id: number }[]).map(({ id }) => id);
      expect(ids.includes(calls)).toBe(ids.includes(-calls));
      expect(ids.includes(calls) || answered.status !== 200).toBe(true);
    }
    // Its engine was that of all objects of the isolate: they open again.
    await vi.waitFor(() => rows(other, ['insert into note values (1, ?)', ['y']]), 5_000);
    expect(await rows(other, ['select text from note'])).toEqual([{ text: 'y' }]);
  });
});
