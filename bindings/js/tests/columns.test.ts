import { describe, expect, test } from 'vitest';
import { connected, expectKind, places } from './testing.js';
import type { Parameter } from '../src/types.js';

const MAX_I64 = 2n ** 63n - 1n;
const MAX_U64 = 2n ** 64n - 1n;
const WIDE = `${'1'.repeat(33)}.12345`;

/** SQL type, parameter, and result. */
const CASES: [type: string, given: Parameter, got: unknown][] = [
  ['boolean', true, true],
  ['boolean', false, false],
  ['tinyint', -128, -128],
  ['smallint', 32767, 32767],
  ['int', -2147483648, -2147483648],
  ['int unsigned', 4294967295, 4294967295],
  ['bigint', MAX_I64, MAX_I64],
  ['bigint', -MAX_I64 - 1n, -MAX_I64 - 1n],
  ['bigint', 7, 7n],
  ['bigint unsigned', MAX_U64, MAX_U64],
  ['double', 0.1, 0.1],
  ['double', 3, 3],
  ['double', -0, -0],
  ['int', -0, 0],
  ['bigint', -0, 0n],
  ['float', 0.5, 0.5],
  ['decimal(12,2)', '1234567890.12', '1234567890.12'],
  ['decimal(12,2)', '-0.05', '-0.05'],
  ['decimal(38,5)', WIDE, WIDE],
  ['text', '', ''],
  ['text', 'Perlmutt 🐚 ñ', 'Perlmutt 🐚 ñ'],
  ['text', '\ufeffmark', '\ufeffmark'],
  ['text', 'no \ufffd', 'no \ufffd'],
  ['varchar(5)', 'abcde', 'abcde'],
  ['blob', new Uint8Array([0, 255, 7]), new Uint8Array([0, 255, 7])],
  ['date', '2026-11-21', new Date('2026-11-21T00:00:00Z')],
  ['date', '0001-01-01', new Date('0001-01-01T00:00:00Z')],
  ['time', '23:59:59.000001', '23:59:59.000001'],
  ['time', '01:02:03', '01:02:03'],
  ['timestamp', new Date('1969-12-31T23:59:59.999Z'), new Date('1969-12-31T23:59:59.999Z')],
  ['timestamp', '2026-11-21 13:05:07.000001', '2026-11-21 13:05:07.000001'],
  ['timestamptz', new Date('1969-12-31T23:59:59.999Z'), new Date('1969-12-31T23:59:59.999Z')],
  ['timestamptz', '2026-11-21 13:05:07+02:00', new Date('2026-11-21T11:05:07Z')],
  ['timestamptz', '2026-11-21 13:05:07.000001Z', '2026-11-21 13:05:07.000001+00'],
  ['uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  ['json', { a: [1, null, { b: 'x' }] }, { a: [1, null, { b: 'x' }] }],
  ['json', '[1, 2]', [1, 2]],
];

describe.each(places)('types in $name', (place) => {
  // A small result travels as single values, a large one as typed arrays.
  test.each([1, 100])('are read back unchanged, %i rows', async (copies) => {
    const db = await connected(await place.fresh());
    for (const [i, [type, given]] of CASES.entries()) {
      await db.exec(`create table t${i} (id int primary key, v ${type})`);
      await db.transaction(async (tx) => {
        const statement = await tx.prepare(`insert into t${i} values (?, ?)`);
        await tx.query(`insert into t${i} values (-1, null)`);
        await Promise.all(Array.from({ length: copies }, (_, id) => statement.run([id, given])));
        await statement.close();
      });
    }
    for (const [i, [type, , got]] of CASES.entries()) {
      const rows = (await db.query(`select v from t${i} order by id`)).rows;
      expect(rows, type).toEqual([
        { v: null },
        ...Array.from({ length: copies }, () => ({ v: got })),
      ]);
    }
  });

  test('are read back from segments', async () => {
    const db = await connected(await place.fresh());
    const columns = CASES.map(([type], i) => `c${i} ${type}`).join(', ');
    await db.exec(`create table t (id int primary key, ${columns})`);
    const marks = CASES.map(() => '?').join(', ');
    const given = CASES.map((c) => c[1]);
    for (let id = 0; id < 40; id++) {
      await db.query(
        `insert into t values (${id}, ${marks})`,
        id % 4 === 3 ? CASES.map(() => null) : given,
      );
    }
    await db.exec('optimize table t flush');
    const result = await db.query('select * from t order by id');
    for (let id = 0; id < 40; id++) {
      const expected = CASES.map((c) => (id % 4 === 3 ? null : c[2]));
      expect(result.values(id)).toEqual([id, ...expected]);
    }
  });
});

test('the option types selects other JavaScript types', async () => {
  const types = { bigint: 'number', decimal: 'number', date: 'string', json: 'string' } as const;
  const db = await connected('memory://', { types });
  await db.exec('create table t (a bigint, b decimal(5,2), c date, d timestamp, e json)');
  await db.query('insert into t values (?, ?, ?, ?, ?)', [
    5,
    '1.50',
    '2026-11-21',
    new Date(0),
    [1],
  ]);
  expect((await db.query('select * from t')).values(0)).toEqual([
    5,
    1.5,
    '2026-11-21',
    '1970-01-01 00:00:00',
    '[1]',
  ]);
});

test('values without an SQL type are refused', async () => {
  const db = await connected('memory://');
  await db.exec('create table t (a json)');
  const insert = (value: unknown) => db.query('insert into t values (?)', [value as Parameter]);
  await expectKind(insert(new Date(NaN)), 'type');
  await expectKind(insert({ big: 1n }), 'type');
  await expectKind(insert('half \ud83d'), 'type');
  await expectKind(
    insert(() => 1),
    'type',
  );
  await expectKind(insert(10n ** 40n), 'type');
  expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 0n }]);
});

test('a column may have any name', async () => {
  const db = await connected('memory://');
  const { rows } = await db.query('select 1 as "__proto__", 2 as "constructor"');
  expect(Object.keys(rows[0]!)).toEqual(['__proto__', 'constructor']);
  expect(Object.getPrototypeOf(rows[0])).toBe(Object.prototype);
});
