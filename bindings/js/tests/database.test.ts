import { NacreError, connect, sql, type Parameter } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { connected, durable, expectKind, places, withNames } from './testing.js';

describe.each(places)('a database in $name', (place) => {
  test('answers rows, columns, rows affected and statistics', async () => {
    const db = await withNames(place, 'nacre', 'pearl');
    const result = await db.query('select id, name from t order by id');
    expect(result.columns.map((column) => column.name)).toEqual(['id', 'name']);
    expect(result.columns[0]!.type).toBe('BIGINT');
    expect(result.rows).toEqual([
      { id: 1n, name: 'nacre' },
      { id: 2n, name: 'pearl' },
    ]);
    expect([...result]).toEqual(result.rows);
    expect(result.values(1)).toEqual([2n, 'pearl']);
    expect(result.rowCount).toBe(2);
    expect(result.statistics.rowsRead).toBeGreaterThanOrEqual(2);
    const updated = await db.query("update t set name = 'shell' where id = 1");
    expect(updated).toMatchObject({ rowsAffected: 1, rowCount: 0, kind: 'write' });
  });

  test('takes parameters by position, by name and by tag', async () => {
    const db = await withNames(place, 'nacre', 'pearl');
    const pearl = [{ name: 'pearl' }];
    expect((await db.query('select name from t where id = ?', [2])).rows).toEqual(pearl);
    expect((await db.query('select name from t where id = $1', [2n])).rows).toEqual(pearl);
    expect((await db.query('select name from t where id = :id', { id: 2 })).rows).toEqual(pearl);
    expect((await db.query(sql`select name from t where id = ${2}`)).rows).toEqual(pearl);
  });

  test('takes parameters as they are at the time of the call', async () => {
    const db = await connected(await place.fresh());
    await db.exec(
      'create table p (id int primary key, bytes blob, buffer blob, doc json, day timestamp)',
    );
    await db.exec('insert into p (id) values (0)');
    const insert = await db.prepare('insert into p values (?, ?, ?, ?, ?)');
    const made = (id: number) => ({
      id,
      bytes: new Uint8Array([id, 7]),
      buffer: new Uint8Array([id, 8]).buffer,
      doc: { id, list: [id] },
      day: new Date(id),
    });
    const calls: Promise<unknown>[] = [];
    await db.transaction(async (tx) => {
      await tx.exec('update p set doc = null where id = 0');
      // This call waits for the transaction, and later calls wait for this one.
      calls.push(db.exec('update p set doc = null where id = 0'));
      const array: Parameter[] = [];
      for (const id of [1, 2, 3]) {
        const row = made(id);
        Object.values(row).forEach((value, i) => (array[i] = value));
        calls.push(
          id === 1 ? insert.run(array) : db.query('insert into p values (?, ?, ?, ?, ?)', array),
        );
        const named: Record<string, Parameter> = { ...row, id: row.id + 10 };
        calls.push(db.query('insert into p values (:id, :bytes, :buffer, :doc, :day)', named));
        named['id'] = row.id = 0;
        row.bytes.fill(0);
        new Uint8Array(row.buffer).fill(0);
        row.doc.list.push(0);
        row.day.setTime(0);
      }
      array[0] = 0;
    });
    await Promise.all(calls);
    const { rows } = await db.query('select * from p where id > 0 order by id');
    const expected = (id: number) => ({ ...made(id), buffer: new Uint8Array([id, 8]) });
    expect(rows).toEqual([1, 2, 3, 11, 12, 13].map((id) => ({ ...expected(id % 10), id })));
  });

  test('takes objects as JSON, and refuses objects without a JSON form', async () => {
    const db = await withNames(place);
    const json = async (value: Parameter) =>
      (await db.query('select cast(? as json) as v', [value])).rows[0]!['v'];
    expect(await json([1, 'two', { three: null }])).toEqual([1, 'two', { three: null }]);
    expect(await json(new URL('https://example.com/'))).toBe('https://example.com/');
    expect(await json({ toJSON: () => undefined })).toBe(null);
    expect(await json(Object.assign(new Set([1, 2]), { toJSON: () => [1, 2] }))).toEqual([1, 2]);
    interface Shell {
      name: string;
    }
    const shell: Shell = { name: 'nacre' };
    class Pearl {
      size = 3;
      shell = shell;
    }
    expect(await json(shell)).toEqual(shell);
    expect(await json(new Pearl())).toEqual({ size: 3, shell });
    expect((await db.query('select :name as v', shell)).rows).toEqual([{ v: 'nacre' }]);
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const lost = [
      new Map([[1, 2]]),
      new Set([1]),
      new Uint16Array(2),
      new DataView(new ArrayBuffer(2)),
      /x/,
    ];
    for (const value of [
      { big: 1n },
      cycle,
      () => 1,
      Symbol('s'),
      ...lost,
      Promise.resolve(),
      new Error('x'),
    ]) {
      await expectKind(db.query('select ?', [value as never]), 'type');
      await expectKind(db.query('select :v', { v: value as never }), 'type');
    }
    await expectKind(db.query('select ?', 5 as never), 'type');
    await expectKind(db.query('select :a', new Map([['a', 1]])), 'type');
    await expectKind(db.prepare((() => 'select 1') as never), 'type');
    // Options instead of parameters, detached buffers, and an object that cannot be read.
    const { signal } = new AbortController();
    await expectKind(db.query('select 1', { signal }), 'type');
    const given = new Uint8Array(8);
    structuredClone(given, { transfer: [given.buffer] });
    await expectKind(db.query('select ?', [given]), 'type');
    await expectKind(db.query('select ?', [given.buffer]), 'type');
    const unreadable = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => expect.fail('unreadable'),
    });
    await expectKind(db.query('select :a', unreadable), 'type');
  });

  test('refuses SQL that is not valid Unicode', async () => {
    const db = await withNames(place);
    const half = "select 'shell \ud83d' as name";
    await expectKind(db.query(half), 'syntax');
    await expectKind(db.exec(half), 'syntax');
    await expectKind(db.prepare(half), 'syntax');
    const whole = "select 'shell \ud83d\udc1a' as name";
    expect((await db.query(whole)).rows).toEqual([{ name: 'shell 🐚' }]);
  });

  test('reports an error, changes nothing, and goes on', async () => {
    const db = await withNames(place, 'nacre');
    await expectKind(db.query('selct 1'), 'syntax', { position: { line: 1, column: 1 } });
    await expectKind(db.query('select * from nowhere'), 'not_found');
    await expectKind(db.query('select nothing from t'), 'not_found');
    await expectKind(db.query('create table t (a int)'), 'already_exists');
    await expectKind(db.query("insert into t values (1, 'twice')"), 'constraint', { table: 't' });
    await expectKind(db.query('insert into t values (?, ?)', ['no number', 'x']), 'type');
    await expectKind(db.query('select * from t where id = ?', []), 'type');
    expect((await db.query('select * from t')).rows).toEqual([{ id: 1n, name: 'nacre' }]);
  });

  test('errors are NacreErrors with an SQLSTATE', async () => {
    const db = await withNames(place);
    const error = await db.query('select * from nowhere').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NacreError);
    expect(error).toMatchObject({
      sqlstate: expect.stringMatching(/^[0-9A-Z]{5}$/),
      retryable: false,
    });
  });

  test('runs several statements, and runs calls in the order they were made', async () => {
    const db = await connected(await place.fresh());
    await db.exec(
      'create table t (id bigint primary key, name text); insert into t values (0, null)',
    );
    const writes = Array.from({ length: 100 }, (_, i) =>
      db.query('insert into t values (?, ?)', [i + 1, `${i}`]),
    );
    const count = db.query('select count(*) as n from t');
    await Promise.all(writes);
    expect((await count).rows).toEqual([{ n: 101n }]);
  });

  test('refuses calls after closing, and closes twice', async () => {
    const db = await withNames(place, 'nacre');
    const last = db.query('select name from t');
    await db.close();
    await db.close();
    expect((await last).rows).toEqual([{ name: 'nacre' }]);
    await expectKind(db.query('select 1'), 'closed');
    await expectKind(
      db.transaction(async () => {}),
      'closed',
    );
  });

  test('a cancelled call does not start', async () => {
    const db = await withNames(place, 'nacre');
    const signal = AbortSignal.abort();
    await expectKind(db.exec('delete from t', { signal }), 'cancelled');
    await expectKind(db.query('delete from t', [], { signal }), 'cancelled');
    expect((await db.query('select * from t')).rowCount).toBe(1);
  });

  test('reports tables and storage', async () => {
    const db = await withNames(place, 'nacre', 'pearl');
    const [table] = await db.inspect();
    expect(table).toMatchObject({
      name: 't',
      rows: 2,
      rowstoreRows: 2,
      primaryKey: ['id'],
      segments: [],
    });
    expect(table!.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'id BIGINT',
      'name TEXT',
    ]);
    await db.exec('optimize table t flush');
    const [flushed] = await db.inspect();
    expect(flushed!.segments).toHaveLength(1);
    const [segment] = flushed!.segments;
    expect(segment).toMatchObject({ rows: 2, deleted: 0, minKey: '1', maxKey: '2' });
    expect(segment).toMatchObject({ run: segment!.id, level: 0 });
    expect(flushed!.segments[0]!.columns.map((column) => column.name)).toEqual(['id', 'name']);
    expect((await db.query('select name from t where id = 2')).rows).toEqual([{ name: 'pearl' }]);
    const storage = await db.storage();
    expect(storage.bytes > 0).toBe(place.name !== 'memory');
    expect(storage.place === 'memory').toBe(place.name === 'memory');
    expect(typeof storage.persisted).toBe('boolean');
  });

  test('is closed by `await using` through Symbol.asyncDispose', async () => {
    const db = await withNames(place);
    await db[Symbol.asyncDispose]();
    await expectKind(db.query('select 1'), 'closed');
  });
});

describe('a durable database', () => {
  test.each(['strict', 'relaxed'] as const)('finds everything again, %s', async (durability) => {
    const url = await durable.fresh();
    const first = await connected(url, { durability });
    await first.exec('create table t (id bigint primary key, name text)');
    await first.query('insert into t values (1, ?), (2, ?), (3, ?)', ['a', 'b', 'c']);
    await first.exec('optimize table t flush');
    await first.exec("update t set name = 'B' where id = 2; delete from t where id = 1");
    await first.flush();
    await first.close();
    const second = await connected(url);
    expect((await second.query('select * from t order by id')).rows).toEqual([
      { id: 2n, name: 'B' },
      { id: 3n, name: 'c' },
    ]);
  });
});

test('invalid URLs and options are refused', async () => {
  await expectKind(connect('gs://bucket'), 'unsupported');
  await expectKind(connect('memory://', { durability: 'perhaps' as 'strict' }), 'type');
  await expectKind(connect('memory://', { memoryLimit: -1 }), 'type');
  await expectKind(connect('memory://', { memoryBytes: 0 }), 'type');
});
