/** Functions of the application: scalar ones and aggregates, from this thread and from modules. */

import type { Database } from 'nacredb';
import { expect, test } from 'vitest';
import { connected, expectKind } from './testing.js';

const inPage = typeof document !== 'undefined';

/** A module as a URL. */
function moduleOf(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

async function filled(): Promise<Database> {
  const db = await connected('memory://');
  await db.exec('create table t (id bigint primary key, g int, s text, d decimal(10, 2), at date)');
  await db.exec(`insert into t values (1, 1, 'a', 1.50, '2026-01-01'), (2, 1, null, 2.25, null),
    (3, 2, 'b', null, '2026-03-01')`);
  return db;
}

const text = { parameters: ['text'], returns: 'text' };

test.skipIf(inPage)('a function of this thread', async () => {
  const db = await filled();
  await db.createFunction('shout', text, (s: string) => `${s.toUpperCase()}!`);
  const { rows } = await db.query('select shout(s) as s from t order by id');
  expect(rows).toEqual([{ s: 'A!' }, { s: null }, { s: 'B!' }]);
  expect((await db.query("select id from t where shout(s) = 'B!'")).rows).toEqual([{ id: 3n }]);
  // Many rows travel in typed arrays.
  const many = `select count(distinct shout('x' || i)) as n from generate_series(1, 5000) as g(i)`;
  expect((await db.query(many)).rows).toEqual([{ n: 5000n }]);
});

test.skipIf(inPage)('values have the types that results have', async () => {
  const db = await filled();
  const seen: unknown[][] = [];
  await db.createFunction(
    'see',
    { parameters: ['bigint', 'decimal(10, 2)', 'date', 'json', 'boolean'], returns: 'int' },
    (...values: unknown[]) => seen.push(values),
  );
  const sql = `select see(id, d, at, '{"a": [1]}', id = 1) as n from t where id = 1`;
  expect((await db.query(sql)).rows).toEqual([{ n: 1 }]);
  expect(seen).toEqual([[1n, '1.50', new Date('2026-01-01'), { a: [1] }, true]]);
  await db.createFunction('pair', { parameters: ['int'], returns: 'json' }, (n: number) => [n, n]);
  expect((await db.query('select pair(g) as p from t where id = 3')).rows).toEqual([{ p: [2, 2] }]);
});

test.skipIf(inPage)('an aggregate of this thread', async () => {
  const db = await filled();
  await db.createAggregate(
    'longest_run',
    { parameters: ['int'], returns: 'int', overNothing: 0 },
    {
      start: () => ({ last: NaN, run: 0, best: 0 }),
      step: ({ last, run, best }: { last: number; run: number; best: number }, x: number) => {
        const now = x === last ? run + 1 : 1;
        return { last: x, run: now, best: Math.max(best, now) };
      },
      finish: ({ best }: { best: number }) => best,
    },
  );
  expect((await db.query('select longest_run(g) as n from t')).rows).toEqual([{ n: 2 }]);
  expect((await db.query('select longest_run(g) as n from t where id > 9')).rows).toEqual([
    { n: 0 },
  ]);
  const grouped = 'select g, longest_run(g) as n from t group by g order by g';
  expect((await db.query(grouped)).rows).toEqual([
    { g: 1, n: 2 },
    { g: 2, n: 1 },
  ]);
});

test('functions and aggregates of a module', async () => {
  const db = await filled();
  const module = moduleOf(`
    export const shout = (s) => s.toUpperCase() + '!';
    export const total_of = { start: () => 0, step: (n, x) => n + x, finish: (n) => n };
  `);
  await db.createFunction('shout', text, { module, name: 'shout' });
  await db.createAggregate(
    'total_of',
    { parameters: ['int'], returns: 'int' },
    { module: new URL(module), name: 'total_of' },
  );
  const { rows } = await db.query('select total_of(g) as n, max(shout(s)) as s from t');
  expect(rows).toEqual([{ n: 4, s: 'B!' }]);
  expect(await db.dropFunction('shout')).toBe(true);
  expect(await db.dropFunction('shout')).toBe(false);
  await expectKind(db.query("select shout('a')"), 'not_found');
});

test('bad definitions change nothing', async () => {
  const db = await filled();
  const module = moduleOf('export const f = (x) => x; export const n = 1;');
  const source = { module, name: 'f' };
  await expectKind(db.createFunction('upper', text, source), 'already_exists');
  await expectKind(db.createFunction('no name', text, source), 'syntax');
  await expectKind(
    db.createFunction('f', { parameters: ['what'], returns: 'int' }, source),
    'not_found',
  );
  await expectKind(db.createFunction('f', text, { module, name: 'g' }), 'not_found');
  await expectKind(db.createFunction('f', text, { module, name: 'n' }), 'type');
  await expectKind(db.createFunction('f', text, { module: moduleOf('('), name: 'f' }), 'io');
  await expectKind(db.createAggregate('f', text, source), 'type');
  await expectKind(db.createFunction('f', { ...text, nulls: 'no' as 'skip' }, source), 'type');
  await expectKind(db.query("select f('a')"), 'not_found');
});

test.runIf(inPage)('a page cannot send a function to its worker', async () => {
  const db = await filled();
  await expectKind(
    db.createFunction('f', text, (s: string) => s),
    'unsupported',
  );
});

test.skipIf(inPage)('what a function throws fails the statement, and nothing else', async () => {
  const db = await filled();
  await db.createFunction('fail', text, () => {
    throw new Error('it does not like this');
  });
  await expect(db.query("select fail('a')")).rejects.toMatchObject({
    kind: 'type',
    message: expect.stringContaining('it does not like this') as string,
  });
  await db.createFunction('later', text, async () => Promise.resolve('a'));
  await expectKind(db.query("select later('a')"), 'type');
  await db.createFunction('number_of', { parameters: ['text'], returns: 'int' }, (s: string) => s);
  await expectKind(db.query("select number_of('a')"), 'type');
  await expectKind(db.query("insert into t (id, s) values (9, fail('a'))"), 'type');
  expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 3n }]);
});

test.skipIf(inPage)('a function cannot use the database that calls it', async () => {
  const db = await filled();
  const inside: Promise<unknown>[] = [];
  await db.createFunction('again', text, (s: string) => {
    inside.push(db.query('select 1').catch((error: unknown) => error));
    return s;
  });
  expect((await db.query("select again('a') as s")).rows).toEqual([{ s: 'a' }]);
  expect(await inside[0]).toMatchObject({ kind: 'unsupported' });
  expect((await db.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
