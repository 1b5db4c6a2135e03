import { CamelCasePlugin, Kysely, sql } from 'kysely';
import { connect } from 'nacredb';
import { NacreDialect } from 'nacredb-kysely';
import { expect, expectTypeOf, test } from 'vitest';
import { empty, withPets } from './testing.js';

test('select: joins, groups, subqueries, sets, windows', async () => {
  const db = await withPets();
  const owners = await db
    .selectFrom('person')
    .leftJoin('pet', 'pet.owner', 'person.id')
    .select(({ fn }) => ['person.name', fn.count('pet.id').as('pets'), fn.sum('price').as('price')])
    .groupBy('person.name')
    .having(({ fn }) => fn.count('pet.id'), '>', 0)
    .orderBy('pets', 'desc')
    .orderBy('person.name')
    .execute();
  expect(owners).toEqual([
    { name: 'Ada', pets: 2n, price: '10.50' },
    { name: 'Bob', pets: 1n, price: '3.00' },
  ]);
  const rich = await db
    .with('priced', (cte) => cte.selectFrom('pet').selectAll().where('price', 'is not', null))
    .selectFrom('person')
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('priced')
          .select('priced.name as best')
          .whereRef('priced.owner', '=', 'person.id')
          .orderBy('price', 'desc')
          .limit(1)
          .as('top'),
      (join) => join.onTrue(),
    )
    .select(['person.id', 'top.best'])
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('priced').select('id').whereRef('owner', '=', 'person.id')),
    )
    .orderBy('person.id')
    .execute();
  expect(rich).toEqual([
    { id: 1, best: 'Rex' },
    { id: 2, best: 'Kim' },
  ]);
  const ranked = await db
    .selectFrom('pet')
    .select(({ fn }) => [
      'name',
      fn
        .agg<bigint>('row_number')
        .over((over) => over.partitionBy('owner').orderBy('name', 'desc'))
        .as('place'),
    ])
    .where('name', 'like', '%m')
    .orderBy((ob) => ob.ref('name'), 'asc')
    .offset(0)
    .limit(5)
    .execute();
  expect(ranked).toEqual([
    { name: 'Kim', place: 1n },
    { name: 'Tom', place: 1n },
  ]);
  const names = await db
    .selectFrom('person')
    .select('name')
    .union(db.selectFrom('pet').select('name'))
    .except(db.selectFrom('pet').select('name').where('owner', 'in', [2]))
    .orderBy('name')
    .execute();
  expect(names.map(({ name }) => name)).toEqual(['Ada', 'Bob', 'Rex', 'Tom']);
});

test('operators of JSON read parts of documents', async () => {
  const db = await withPets();
  const found = await db
    .selectFrom('person')
    .select(({ ref }) => [
      'name',
      ref('notes', '->')
        .key('likes' as never)
        .at(0 as never)
        .as('first'),
    ])
    .where(sql`notes->>'likes[0]'`, '=', 'engines')
    .execute();
  expect(found).toEqual([{ name: 'Ada', first: 'engines' }]);
});

test('values: dates, JSON, booleans, decimals, big integers come back as they went', async () => {
  const db = await withPets();
  const ada = await db
    .selectFrom('person')
    .selectAll()
    .where('name', '=', 'Ada')
    .executeTakeFirstOrThrow();
  expect(ada).toEqual({
    id: 1,
    name: 'Ada',
    born: new Date('1815-12-10'),
    notes: { likes: ['engines'] },
    active: true,
  });
  const pet = await db.selectFrom('pet').selectAll().orderBy('id').executeTakeFirst();
  expect(pet).toEqual({ id: 1n, owner: 1, name: 'Rex', price: '10.50' });
});

test('insert, update and delete with returning', async () => {
  const db = await withPets();
  const cyd = await db
    .insertInto('person')
    .values({ name: 'Cyd', born: null, notes: null })
    .returning(['id', 'active'])
    .executeTakeFirstOrThrow();
  expectTypeOf(cyd).toEqualTypeOf<{ id: number; active: boolean }>();
  expect(cyd).toEqual({ id: 3, active: true });
  const copied = await db
    .insertInto('pet')
    .columns(['owner', 'name'])
    .expression((eb) => eb.selectFrom('person').select(['id', 'name']).where('name', '=', 'Cyd'))
    .executeTakeFirstOrThrow();
  expect(copied.numInsertedOrUpdatedRows).toBe(1n);
  const raised = await db
    .updateTable('pet')
    .set({ price: sql`price + ${1}` })
    .where('price', 'is not', null)
    .returning(['name', 'price'])
    .execute();
  expect(raised.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
    { name: 'Kim', price: '4.00' },
    { name: 'Rex', price: '11.50' },
  ]);
  const joined = await db
    .updateTable('pet')
    .from('person')
    .set({ name: 'Ada’s' })
    .whereRef('person.id', '=', 'pet.owner')
    .where('person.name', '=', 'Ada')
    .executeTakeFirst();
  expect(joined.numUpdatedRows).toBe(2n);
  const gone = await db.deleteFrom('pet').where('owner', '=', 2).returningAll().execute();
  expect(gone).toEqual([{ id: 3n, owner: 2, name: 'Kim', price: '4.00' }]);
  const none = await db.deleteFrom('pet').where('owner', '=', 9).executeTakeFirst();
  expect(none.numDeletedRows).toBe(0n);
});

test('upserts: on conflict, insert or ignore, insert or replace', async () => {
  const db = await withPets();
  const again = { name: 'Ada', born: new Date('1815-12-11'), notes: null };
  const updated = await db
    .insertInto('person')
    .values(again)
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((eb) => ({ born: eb.ref('excluded.born') })),
    )
    .returning(['id', 'born'])
    .executeTakeFirst();
  expect(updated).toEqual({ id: 1, born: again.born });
  const skipped = await db
    .insertInto('person')
    .values(again)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  expect(skipped.numInsertedOrUpdatedRows).toBe(0n);
  await db.insertInto('person').orIgnore().values(again).execute();
  await db.insertInto('person').ignore().values(again).execute();
  const replaced = await db
    .replaceInto('person')
    .values({ id: 1, name: 'Eve', born: null, notes: null })
    .returning('name')
    .execute();
  expect(replaced).toEqual([{ name: 'Eve' }]);
  expect(await db.selectFrom('person').select('name').orderBy('name').execute()).toEqual([
    { name: 'Bob' },
    { name: 'Eve' },
  ]);
});

test('raw SQL binds its parameters', async () => {
  const db = await withPets();
  const name = "Rex' or '1'='1";
  const { rows } = await sql<{ n: bigint }>`
    select count(*) as n from ${sql.table('pet')} where ${sql.ref('name')} = ${name}
  `.execute(db);
  expect(rows).toEqual([{ n: 0n }]);
  await db.schema.createTable('quo"ted').addColumn('a"b', 'integer').execute();
  await sql`insert into ${sql.table('quo"ted')} values (7)`.execute(db);
  expect(await (db as any).selectFrom('quo"ted').select('a"b').execute()).toEqual([{ 'a"b': 7 }]);
});

test('a stream yields all rows and can be left', async () => {
  const db = empty<{ n: { i: bigint } }>();
  await sql`create table n as select i from range(10000) as r(i)`.execute(db);
  let sum = 0n;
  for await (const { i } of db.selectFrom('n').select('i').stream()) {
    sum += i;
  }
  expect(sum).toBe(49_995_000n);
  for await (const { i } of db.selectFrom('n').select('i').orderBy('i').stream(1)) {
    expect(i).toBe(0n);
    break;
  }
  await db.deleteFrom('n').execute();
  expect(await db.selectFrom('n').selectAll().execute()).toEqual([]);
});

test('explain shows the plan', async () => {
  const db = await withPets();
  const plan = await db.selectFrom('pet').selectAll().where('id', '=', 1n).explain();
  expect(JSON.stringify(plan)).toContain('pet');
});

test('plugins apply', async () => {
  const database = await connect('memory://');
  const db = new Kysely<{ firstName: { lastSeen: number } }>({
    dialect: new NacreDialect({ database }),
    plugins: [new CamelCasePlugin()],
  });
  await db.schema.createTable('firstName').addColumn('lastSeen', 'integer').execute();
  await db.insertInto('firstName').values({ lastSeen: 3 }).execute();
  expect(await db.selectFrom('firstName').selectAll().execute()).toEqual([{ lastSeen: 3 }]);
  expect((await database.query('select last_seen from first_name')).rowCount).toBe(1);
  expect((await db.introspection.getTables()).map(({ name }) => name)).toEqual(['first_name']);
  await db.destroy();
});

test('destroy closes the database, and every call fails afterwards', async () => {
  const database = await connect('memory://');
  const db = new Kysely<any>({ dialect: new NacreDialect({ database }) });
  await sql`select 1`.execute(db);
  await db.destroy();
  await expect(database.query('select 1')).rejects.toMatchObject({ kind: 'closed' });
  await expect(sql`select 1`.execute(db)).rejects.toThrow();
});

test('errors are those of nacredb', async () => {
  const db = await withPets();
  await expect(
    db.insertInto('person').values({ name: 'Ada', born: null, notes: null }).execute(),
  ).rejects.toMatchObject({ name: 'NacreError', kind: 'constraint', table: 'person' });
  await expect((db as any).selectFrom('nothing').selectAll().execute()).rejects.toMatchObject({
    kind: 'not_found',
  });
});

test('foreign keys: rows follow their parents, and refer to none that are missing', async () => {
  const db = await withPets();
  await db.schema
    .createTable('visit')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('pet', 'bigint', (column) => column.references('pet.id').onDelete('cascade'))
    .addColumn('person', 'integer')
    .addForeignKeyConstraint('visit_person', ['person'], 'person', ['id'], (key) =>
      key.onDelete('set null').onUpdate('cascade'),
    )
    .execute();
  const visits = db.withTables<{ visit: { id: number; pet: bigint; person: number | null } }>();
  await visits.insertInto('visit').values({ id: 1, pet: 1n, person: 1 }).execute();
  const missing = visits.insertInto('visit').values({ id: 2, pet: 99n, person: 1 }).execute();
  await expect(missing).rejects.toMatchObject({ kind: 'constraint', sqlstate: '23503' });
  await db.deleteFrom('person').where('id', '=', 1).execute();
  expect(await visits.selectFrom('visit').select('person').execute()).toEqual([{ person: null }]);
  await db.deleteFrom('pet').where('id', '=', 1n).execute();
  expect(await visits.selectFrom('visit').selectAll().execute()).toEqual([]);
});
