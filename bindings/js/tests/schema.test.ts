/** The types that a schema gives. `tsc` checks them; running shows that the text is what it says. */

import { connect, sql, type LiveChanges, type LiveSubscription, type Row } from 'nacredb';
import { expect, expectTypeOf, onTestFinished, test } from 'vitest';

interface Schema {
  visit: { id: bigint; page: string; ms: number | null };
  page: { name: string };
}

test('a schema types tables and rows', async () => {
  const db = await connect<Schema>('memory://');
  onTestFinished(() => db.close());
  await db.exec(`create table visit (id bigint primary key, page text, ms int);
    create table page (name text primary key)`);
  expect(await db.insertRows('visit', [{ id: 1, page: 'home' }])).toBe(1);
  expect(await db.insertRows('visit', { id: [2], page: ['docs'], ms: Int32Array.of(3) })).toBe(1);

  const all = await db.query('select * from visit');
  expectTypeOf(all.rows).toEqualTypeOf<Schema['visit'][]>();
  const some = await db.query('SELECT * FROM visit WHERE id = ? ORDER BY id', [2]);
  expectTypeOf(some.rows).toEqualTypeOf<Schema['visit'][]>();
  expect(some.rows).toEqual([{ id: 2n, page: 'docs', ms: 3 }]);
  const joined = await db.query('select * from visit join page on name = page');
  expectTypeOf(joined.rows).toEqualTypeOf<Row[]>();
  const counted = await db.query<{ n: bigint }>('select count(*) as n from visit');
  expectTypeOf(counted.rows).toEqualTypeOf<{ n: bigint }[]>();
  const text: string = 'select * from visit';
  expectTypeOf((await db.query(text)).rows).toEqualTypeOf<Row[]>();

  const statement = await db.prepare('select * from visit limit 1');
  expectTypeOf(await statement.get()).toEqualTypeOf<Schema['visit'] | undefined>();
  for await (const row of db.stream('select * from page').rows()) {
    expectTypeOf(row).toEqualTypeOf<Schema['page']>();
  }
  await db.transaction(async (tx) => {
    expectTypeOf((await tx.query('select * from page')).rows).toEqualTypeOf<Schema['page'][]>();
  });
});

test('a schema types live queries and changes', async () => {
  const db = await connect<Schema>('memory://');
  onTestFinished(() => db.close());
  await db.exec('create table visit (id bigint primary key, page text, ms int)');
  const seen: unknown[] = [];
  const all = await db.live.query('select * from visit order by id', [], ({ rows }) => {
    expectTypeOf(rows).toEqualTypeOf<Schema['visit'][]>();
    seen.push(rows);
  });
  expectTypeOf(all).toEqualTypeOf<LiveSubscription<Schema['visit']>>();
  const counted = await db.live.query<{ n: bigint }>('select count(*) as n from visit', [], (all) =>
    expectTypeOf(all.rows).toEqualTypeOf<{ n: bigint }[]>(),
  );
  await db.live.query('select page from visit', [], ({ rows }) =>
    expectTypeOf(rows).toEqualTypeOf<Row[]>(),
  );
  await db.live.query(sql`select * from visit`, ({ rows }) =>
    expectTypeOf(rows).toEqualTypeOf<Row[]>(),
  );
  const changes = await db.live.changes('visit');
  expectTypeOf(changes).toEqualTypeOf<LiveChanges<Schema['visit']>>();
  const named = await db.live.changes<{ id: bigint }>('visit');
  expectTypeOf(named).toEqualTypeOf<LiveChanges<{ id: bigint }>>();
  await db.query("insert into visit values (1, 'home', 5)");
  const row = { id: 1n, page: 'home', ms: 5 };
  expect((await changes.next()).value?.inserted).toEqual([row]);
  await expect.poll(() => seen).toEqual([[], [row]]);
  await Promise.all([all, counted, changes, named].map((each) => each.unsubscribe()));
  // @ts-expect-error There is no such table.
  await expect(db.live.changes('visits')).rejects.toThrow('visits');
});

test('a schema refuses other tables and columns', async () => {
  const db = await connect<Schema>('memory://');
  onTestFinished(() => db.close());
  // @ts-expect-error There is no such table.
  await expect(db.insertRows('visits', [{ id: 1 }])).rejects.toThrow('visits');
  // @ts-expect-error There is no such column.
  await expect(db.insertRows('visit', [{ id: 1, pages: 'home' }])).rejects.toThrow('visit');
});

test('without a schema, rows have any columns', async () => {
  const db = await connect('memory://');
  onTestFinished(() => db.close());
  await db.exec('create table t (id int primary key)');
  await db.insertRows('t', [{ id: 1 }]);
  expectTypeOf((await db.query('select * from t')).rows).toEqualTypeOf<Row[]>();
  const changes = await db.live.changes('t');
  expectTypeOf(changes).toEqualTypeOf<LiveChanges<Row>>();
  await changes.unsubscribe();
});
