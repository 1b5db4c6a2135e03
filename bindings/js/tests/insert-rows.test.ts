import { describe, expect, test } from 'vitest';
import { connected, expectKind, places, withNames } from './testing.js';

const ROWS = 20_000;

function row(id: number): { id: number; name: string | null } {
  return { id, name: id % 3 === 0 ? null : `name ${id}` };
}

async function* later(from: number, to: number): AsyncGenerator<object> {
  for (let id = from; id < to; id++) {
    yield row(id);
  }
}

describe.each(places)('insertRows into $name', (place) => {
  test('takes objects at once and one after another', async () => {
    const db = await withNames(place);
    const rows = Array.from({ length: ROWS }, (_, id) => row(id));
    const seen: number[] = [];
    const onProgress = (done: number) => seen.push(done);
    expect(await db.insertRows('t', rows, { onProgress })).toBe(ROWS);
    const pieces = Array.from({ length: Math.ceil(ROWS / 2048) }, (_, i) => (i + 1) * 2048);
    expect(seen).toEqual(pieces.map((done) => Math.min(done, ROWS)));
    expect(await db.insertRows('t', later(ROWS, 2 * ROWS))).toBe(ROWS);
    expect(await db.insertRows('t', new Set([row(-1), row(-2)]))).toBe(2);
    expect(await db.insertRows('t', [])).toBe(0);
    const { rows: sums } = await db.query(
      'select cast(count(*) as int) as n, cast(count(name) as int) as named from t',
    );
    expect(sums).toEqual([{ n: 2 * ROWS + 2, named: 26_668 }]);
  });

  test('takes columns, typed or not', async () => {
    const db = await withNames(place);
    const id = Float64Array.from({ length: ROWS }, (_, i) => i);
    const name = Array.from(id, (i) => `name ${i}`);
    expect(await db.insertRows('t', { name, id })).toBe(ROWS);
    expect(await db.insertRows('t', { id: BigInt64Array.of(-1n, -(2n ** 63n)) })).toBe(2);
    expect(await db.insertRows('t', { id: [], name: [] })).toBe(0);
    const found = await db.query('select name from t where id in (?, ?, ?) order by id', [
      ...[-(2n ** 63n), 0, ROWS - 1],
    ]);
    expect(found.rows.map((row) => row['name'])).toEqual([null, 'name 0', `name ${ROWS - 1}`]);
  });

  test('keeps every text as it is, and null apart from an empty one', async () => {
    const db = await withNames(place);
    const texts = [
      ...['', 'ascii', null, undefined, '\u{feff}mark', 'é', '漢字', '😀', 'a\0b', '\ue000'],
      ...['ends with \u{1f600}', '\u{1f600} begins', 'x'.repeat(100_000)],
    ];
    const kept = texts.map((text) => text ?? null);
    const ids = (from: number): number[] => texts.map((_, i) => from + i);
    await db.insertRows('t', { id: ids(0), name: texts });
    await db.insertRows(
      't',
      texts.map((name, i) => ({ id: 100 + i, name })),
    );
    // Only ASCII, and a text that is a number in disguise.
    await db.insertRows('t', { id: ['200', '201'], name: ['plain', null] });
    const { rows } = await db.query('select name from t order by id');
    expect(rows.map((row) => row['name'])).toEqual([...kept, ...kept, 'plain', null]);
  });

  test('refuses text that is no Unicode', async () => {
    const db = await withNames(place);
    // Their halves are in two texts.
    for (const name of [
      ['fine', 'a\ud83d'],
      ['a\ud83d', '\ude00b'],
    ]) {
      const inserted = db.insertRows('t', { id: [1, 2], name });
      await expectKind(inserted, 'type', {
        message: expect.stringMatching(/^column name, row \d: text with a lone surrogate/),
      });
    }
    expect((await db.query('select * from t')).rows).toEqual([]);
  });

  test('stores values as parameters of an INSERT', async () => {
    const db = await connected(await place.fresh());
    await db.exec(`create table v (id int primary key, b boolean, d decimal(9, 2), x blob, y date,
      w time, z timestamp, j json, f double default 1.5, u bigint unsigned, tz timestamptz, id2 uuid)`);
    const values = {
      id: 1,
      b: true,
      d: '12.5',
      x: new Uint8Array([1, 2]),
      y: '2026-11-25',
      w: '12:34:56',
      z: new Date(1_000),
      j: { list: [1, 'two'] },
      u: 2n ** 64n - 1n,
      tz: '2026-11-25 10:00+01',
      id2: 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
    };
    expect(await db.insertRows('v', [values])).toBe(1);
    const names = Object.keys(values);
    await db.query(
      `insert into v (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`,
      Object.values({ ...values, id: 2 }),
    );
    const { rows } = await db.query('select * from v order by id');
    expect(rows[0]).toEqual({ ...rows[1]!, id: 1 });
    expect(rows[0]).toMatchObject({ d: '12.50', j: { list: [1, 'two'] }, f: 1.5 });
  });

  test('keeps, replaces or refuses rows that are there', async () => {
    const db = await withNames(place, 'a', 'b');
    const rows = [
      { id: 2, name: 'x' },
      { id: 3, name: 'y' },
    ];
    await expectKind(db.insertRows('t', rows), 'constraint');
    expect(await db.insertRows('t', rows, { onDuplicate: 'skip' })).toBe(1);
    expect(await db.insertRows('t', rows, { onDuplicate: 'replace' })).toBe(2);
    const found = await db.query('select name from t order by id');
    expect(found.rows).toEqual([{ name: 'a' }, { name: 'x' }, { name: 'y' }]);
  });

  test('that fails inserts nothing and locks nothing', async () => {
    const db = await withNames(place, 'a');
    const many = Array.from({ length: ROWS }, (_, i) => row(i + 10));
    const bad = (last: object) => db.insertRows('t', [...many, last]);
    await expectKind(bad({ id: 'no number' }), 'type', {
      message: expect.stringContaining('column id, row'),
    });
    await expectKind(bad({ id: 1, name: 'twice' }), 'constraint');
    await expectKind(bad({ id: null }), 'constraint');
    await expectKind(bad({ id: 5, other: 1 }), 'type');
    await expectKind(bad({ id: 5, name: Symbol('x') }), 'type');
    await expectKind(bad(7 as never), 'type');
    await expectKind(db.insertRows('t', [{}]), 'type');
    await expectKind(db.insertRows('t', { id: [1, 2], name: ['x'] }), 'type');
    await expectKind(db.insertRows('t', { id: [1], page: ['x'] }), 'not_found');
    await expectKind(db.insertRows('t', { id: 7 } as never), 'type');
    await expectKind(db.insertRows('t', null as never), 'type');
    await expectKind(db.insertRows('nowhere', many), 'not_found');
    const { signal } = new AbortController();
    const aborted = new AbortController();
    const onProgress = () => aborted.abort();
    await expectKind(db.insertRows('t', many, { signal: aborted.signal, onProgress }), 'cancelled');
    expect((await db.query('select * from t')).rowCount).toBe(1);
    expect(await db.insertRows('t', many, { signal })).toBe(ROWS);
  });

  test('is told of what is wrong while its rows are long in coming', async () => {
    const db = await withNames(place, 'a');
    async function* slow(): AsyncGenerator<object> {
      await new Promise((resolve) => setTimeout(resolve, 50));
      yield row(1);
    }
    // An unhandled rejection would fail this test.
    await expectKind(db.insertRows('nowhere', slow()), 'not_found');
    async function* stalled(): AsyncGenerator<object> {
      await new Promise(() => {});
    }
    const stopped = new AbortController();
    const inserted = db.insertRows('t', stalled(), { signal: stopped.signal });
    setTimeout(() => stopped.abort(), 50);
    await expectKind(inserted, 'cancelled');
    expect((await db.query('select * from t')).rowCount).toBe(1);
  });

  test('waits for earlier calls and lets others run', async () => {
    const db = await connected(await place.fresh());
    const created = db.exec('create table t (id bigint primary key, name text)');
    const inserted = db.insertRows('t', later(0, ROWS));
    await created;
    const one = db.query('select 1 as one');
    expect((await one).rows).toEqual([{ one: 1 }]);
    expect(await inserted).toBe(ROWS);
  });
});
