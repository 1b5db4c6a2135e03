import { tableFromArrays, tableFromIPC, tableToIPC } from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

const ROWS = 20_000;

function ids(from: number, count: number): BigInt64Array {
  return BigInt64Array.from({ length: count }, (_, i) => BigInt(from + i));
}

function stream(from: number, count: number): Uint8Array {
  const name = Array.from({ length: count }, (_, i) => (i % 7 === 0 ? null : `name ${i % 100}`));
  return tableToIPC(tableFromArrays({ name, id: ids(from, count) }), 'stream');
}

async function* pieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) {
    await Promise.resolve();
    yield bytes.subarray(at, at + length);
  }
}

describe.each(places)('insertArrow into $name', (place) => {
  test('takes bytes, pieces, streams and buffers', async () => {
    const db = await withNames(place);
    const bytes = stream(0, ROWS);
    expect(await db.insertArrow('t', bytes)).toBe(ROWS);
    expect(await db.insertArrow('t', pieces(stream(ROWS, ROWS), 1_001))).toBe(ROWS);
    const body = new Blob([stream(2 * ROWS, 10) as Uint8Array<ArrayBuffer>]).stream();
    expect(await db.insertArrow('T', body)).toBe(10);
    expect(await db.insertArrow('t', new Uint8Array(stream(-10, 10)).buffer)).toBe(10);
    expect(await db.insertArrow('t', [stream(-30, 10), stream(-20, 10)])).toBe(20);
    const { rows } = await db.query(
      'select cast(count(*) as int) as n, cast(count(name) as int) as named, min(id) as first from t',
    );
    expect(rows).toEqual([{ n: 2 * ROWS + 40, named: 34_316, first: -30n }]);
  });

  test('copies what queryArrow and stream answer', async () => {
    const db = await withNames(place, 'a', 'b');
    await db.exec(`create table u (id bigint primary key, name text, n int default 7);
      create table v (id bigint primary key, name text)`);
    expect(await db.insertArrow('u', await db.queryArrow('select name, id from t'))).toBe(2);
    await db.insertArrow('t', stream(100, ROWS));
    expect(await db.insertArrow('v', db.stream('select * from t'))).toBe(ROWS + 2);
    const { rows } = await db.query('select * from u order by id');
    expect(rows).toEqual([
      { id: 1n, name: 'a', n: 7 },
      { id: 2n, name: 'b', n: 7 },
    ]);
    const copied = tableFromIPC(await db.queryArrow('select * from v order by id'));
    const original = tableFromIPC(await db.queryArrow('select * from t order by id'));
    expect(copied.toString()).toBe(original.toString());
  });

  test('keeps, replaces or refuses rows that are there', async () => {
    const db = await withNames(place, 'a', 'b');
    await expectKind(db.insertArrow('t', stream(2, 5)), 'constraint');
    expect((await db.query('select * from t')).rowCount).toBe(2);
    expect(await db.insertArrow('t', stream(2, 5), { onDuplicate: 'skip' })).toBe(4);
    expect((await db.query('select name from t where id = 2')).rows).toEqual([{ name: 'b' }]);
    expect(await db.insertArrow('t', stream(2, 2), { onDuplicate: 'replace' })).toBe(2);
    expect((await db.query('select name from t where id = 3')).rows).toEqual([{ name: 'name 1' }]);
    await expectKind(db.insertArrow('t', stream(9, 1), { onDuplicate: 'no' as 'skip' }), 'type');
  });

  test('that fails inserts nothing and locks nothing', async () => {
    const db = await withNames(place, 'a');
    const bytes = stream(10, ROWS);
    await expectKind(db.insertArrow('t', bytes.subarray(0, bytes.length / 2)), 'corrupt');
    await expectKind(db.insertArrow('t', []), 'corrupt');
    await expectKind(db.insertArrow('t', new Uint8Array(100)), 'corrupt');
    await expectKind(db.insertArrow('nowhere', bytes), 'not_found');
    await expectKind(db.insertArrow('t', [bytes, 'text' as never]), 'type');
    await expectKind(db.insertArrow('t', 7 as never), 'type');
    const other = tableToIPC(tableFromArrays({ id: ids(1, 1), page: ['x'] }));
    await expectKind(db.insertArrow('t', other), 'not_found');
    const wrong = tableToIPC(tableFromArrays({ id: ids(1, 1), name: Int32Array.of(1) }));
    await expectKind(db.insertArrow('t', wrong), 'type');
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield bytes;
      throw new Error('the network is gone');
    }
    await expect(db.insertArrow('t', failing())).rejects.toThrow('the network is gone');
    const aborted = new AbortController();
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield stream(10, 10);
      aborted.abort();
      for (;;) {
        yield new Uint8Array(8);
      }
    }
    const { signal } = aborted;
    await expectKind(db.insertArrow('t', endless(), { signal }), 'cancelled');
    await expectKind(db.insertArrow('t', bytes, { signal }), 'cancelled');
    expect((await db.query('select * from t')).rowCount).toBe(1);
    expect(await db.insertArrow('t', bytes)).toBe(ROWS);
  });

  test('may be closed during a load', async () => {
    const db = await withNames(place);
    async function* closing(): AsyncGenerator<Uint8Array> {
      yield stream(10, 10);
      await db.close();
      yield stream(20, 10);
    }
    await expectKind(db.insertArrow('t', closing()), 'closed');
  });
});
