import {
  and,
  asc,
  avg,
  count,
  countDistinct,
  desc,
  eq,
  gt,
  ilike,
  inArray,
  isNotNull,
  isNull,
  like,
  lt,
  max,
  notInArray,
  or,
  sql,
  sum,
  type SQL,
} from 'drizzle-orm';
import { alias, pgTable, timestamp, union, uuid, varchar } from 'drizzle-orm/pg-core';
import { connect } from 'nacredb';
import { applyMigrations, drizzle } from 'nacredb-drizzle';
import { expect, test } from 'vitest';
import { author, book } from './schema.js';
import { empty, withBooks } from './testing.js';

test('ids that are uuids, and moments with a time zone', async () => {
  const db = await empty();
  const visit = pgTable('visit', {
    id: uuid('id').primaryKey().defaultRandom(),
    at: timestamp('at', { withTimezone: true }).notNull().defaultNow(),
    left: timestamp('left', { withTimezone: true, mode: 'string' }),
    page: varchar('page', { length: 5 }),
  });
  await applyMigrations(db, [
    {
      tag: '0000_visit',
      when: 1,
      sql: `CREATE TABLE "visit" (
        "id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
        "at" timestamp with time zone DEFAULT now() NOT NULL,
        "left" timestamp with time zone,
        "page" varchar(5)
      );`,
    },
    {
      tag: '0001_page',
      when: 2,
      sql: 'ALTER TABLE "visit" ALTER COLUMN "page" SET DATA TYPE text;',
    },
  ]);
  const at = new Date('2026-06-01T10:00:00.123Z');
  const id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
  await db.insert(visit).values({ id, at, left: '2026-06-01 14:00:00+02', page: 'a longer name' });
  const [made] = await db.insert(visit).values({}).returning();
  expect(made!.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(Math.abs(Date.now() - made!.at.getTime())).toBeLessThan(60_000);
  const [found] = await db.select().from(visit).where(eq(visit.id, id.toUpperCase()));
  expect(found).toMatchObject({ id, at, page: 'a longer name' });
  expect(new Date(found!.left!)).toEqual(new Date('2026-06-01T12:00:00Z'));
  const early = await db
    .select()
    .from(visit)
    .where(lt(visit.at, new Date('2026-06-01T10:00:01Z')));
  expect(early.map((row) => row.id)).toEqual(at < made!.at ? [id] : [id, made!.id]);
});

test('values of every column type come back as they went', async () => {
  const db = await withBooks();
  const [ada] = await db.select().from(author).where(eq(author.name, 'Ada'));
  expect(ada).toEqual({
    id: 1,
    name: 'Ada',
    email: 'ada@x.example',
    active: true,
    born: new Date('1815-12-10'),
    joined: expect.any(Date),
    settings: { dark: true },
    editor: null,
  });
  expect(Math.abs(Date.now() - ada!.joined.getTime())).toBeLessThan(60_000);
  expect(await db.select().from(book).orderBy(book.id)).toEqual([
    {
      id: 10,
      author: 1,
      title: 'Notes "A"\n\\100 % é',
      price: '10.50',
      sold: 9007199254740993n,
      rating: null,
      opens: null,
      cover: null,
    },
    {
      id: 11,
      author: 1,
      title: 'Bernoulli',
      price: null,
      sold: 0n,
      rating: 4.5,
      opens: '08:30:00',
      cover: null,
    },
    {
      id: 12,
      author: 2,
      title: 'Shells',
      price: '3.00',
      sold: 0n,
      rating: null,
      opens: null,
      cover: Uint8Array.of(0, 255),
    },
  ]);
});

test.each(['value', 'string'] as const)('JSON texts stay texts, with json: %s', async (json) => {
  const database = await connect('memory://', { types: { json } });
  await database.exec(
    'create table author (id serial primary key, name varchar(60), email text, ' +
      'active boolean, born date, joined timestamp default now(), settings json, editor int)',
  );
  const db = drizzle(database);
  for (const [i, settings] of ['5', '"x"', ['a'], 5, null, true, { a: [1] }].entries()) {
    const [back] = await db
      .insert(author)
      .values({ name: `${i}`, settings })
      .returning({ settings: author.settings });
    expect(back).toEqual({ settings });
  }
  await database.close();
});

test('operators of JSON read parts of documents', async () => {
  const db = await withBooks();
  const dark = sql<string>`${author.settings}->>'dark'`;
  const found = await db
    .select({ name: author.name, dark })
    .from(author)
    .where(sql`${author.settings} @> '{"dark": true}'`);
  expect(found).toEqual([{ name: 'Ada', dark: 'true' }]);
});

test('filters, order, limit, offset', async () => {
  const db = await withBooks();
  const titles = async (where: SQL | undefined) =>
    (await db.select({ id: book.id }).from(book).where(where).orderBy(asc(book.id))).map(
      ({ id }) => id,
    );
  expect(await titles(like(book.title, '%s%'))).toEqual([10, 12]);
  expect(await titles(ilike(book.title, 's%'))).toEqual([12]);
  expect(await titles(and(isNotNull(book.price), gt(book.price, '5')))).toEqual([10]);
  expect(await titles(or(isNull(book.price), eq(book.sold, 9007199254740993n)))).toEqual([10, 11]);
  expect(await titles(inArray(book.id, [10, 12]))).toEqual([10, 12]);
  expect(await titles(notInArray(book.id, [10, 12]))).toEqual([11]);
  const joined = await db
    .select()
    .from(author)
    .where(gt(author.joined, new Date(0)));
  expect(joined).toHaveLength(2);
  expect(
    await db
      .select()
      .from(author)
      .where(eq(author.born, new Date('1815-12-10'))),
  ).toHaveLength(1);
  const second = await db.select().from(book).orderBy(desc(book.id)).limit(1).offset(1);
  expect(second[0]?.id).toBe(11);
  expect(await db.selectDistinct({ author: book.author }).from(book)).toHaveLength(2);
  const firsts = await db
    .selectDistinctOn([book.author], { id: book.id })
    .from(book)
    .orderBy(book.author, desc(book.id));
  expect(firsts).toEqual([{ id: 11 }, { id: 12 }]);
});

test('joins, also of a table with itself', async () => {
  const db = await withBooks();
  const editor = alias(author, 'editor');
  const rows = await db
    .select()
    .from(author)
    .leftJoin(editor, eq(author.editor, editor.id))
    .orderBy(author.id);
  expect(rows.map(({ author, editor }) => [author.name, editor?.name ?? null])).toEqual([
    ['Ada', null],
    ['Bob', 'Ada'],
  ]);
  const titles = await db
    .select({ name: author.name, title: book.title })
    .from(author)
    .innerJoin(book, eq(book.author, author.id))
    .where(eq(author.id, 2));
  expect(titles).toEqual([{ name: 'Bob', title: 'Shells' }]);
  const all = await db.select().from(author).fullJoin(book, eq(book.author, author.id));
  expect(all).toHaveLength(3);
});

test('aggregates, subqueries, common table expressions, unions, $count', async () => {
  const db = await withBooks();
  const perAuthor = await db
    .select({
      author: book.author,
      books: count(),
      prices: count(book.price),
      total: sum(book.price),
      mean: avg(book.rating).mapWith(Number),
      last: max(book.id),
    })
    .from(book)
    .groupBy(book.author)
    .having(gt(count(), 0))
    .orderBy(book.author);
  expect(perAuthor).toEqual([
    { author: 1, books: 2, prices: 1, total: '10.50', mean: 4.5, last: 11 },
    { author: 2, books: 1, prices: 1, total: '3.00', mean: null, last: 12 },
  ]);
  const [distinct] = await db.select({ n: countDistinct(book.author) }).from(book);
  expect(distinct).toEqual({ n: 2 });
  const prolific = db
    .select({ id: book.author, n: count().as('n') })
    .from(book)
    .groupBy(book.author)
    .as('prolific');
  const counted = await db
    .select({ name: author.name, n: prolific.n })
    .from(author)
    .innerJoin(prolific, eq(prolific.id, author.id))
    .orderBy(desc(prolific.n));
  expect(counted[0]).toEqual({ name: 'Ada', n: 2 });
  const cheap = db.$with('cheap').as(
    db
      .select()
      .from(book)
      .where(sql`${book.price} < 5`),
  );
  expect(await db.with(cheap).select({ title: cheap.title }).from(cheap)).toEqual([
    { title: 'Shells' },
  ]);
  const names = db.select({ name: author.name }).from(author);
  const both = await union(names, db.select({ name: book.title }).from(book)).limit(9);
  expect(both).toHaveLength(5);
  expect(await db.$count(book)).toBe(3);
  expect(await db.$count(book, eq(book.author, 1))).toBe(2);
  const withCounts = await db
    .select({ name: author.name, books: db.$count(book, eq(book.author, author.id)) })
    .from(author)
    .orderBy(author.id);
  expect(withCounts).toEqual([
    { name: 'Ada', books: 2 },
    { name: 'Bob', books: 1 },
  ]);
});

test('insert, update and delete with returning', async () => {
  const db = await withBooks();
  const [cyd] = await db.insert(author).values({ name: 'Cyd' }).returning();
  expect(cyd).toMatchObject({ id: 3, name: 'Cyd', active: true, email: null });
  const updated = await db
    .update(book)
    .set({ price: sql`${book.price} * 2`, rating: 5 })
    .where(eq(book.title, 'Shells'))
    .returning({ id: book.id, price: book.price });
  expect(updated).toEqual([{ id: 12, price: '6.00' }]);
  const result = await db.update(book).set({ rating: 1 });
  expect(result.rowsAffected).toBe(3);
  const joined = await db
    .update(book)
    .set({ rating: 2 })
    .from(author)
    .where(and(eq(author.id, book.author), eq(author.name, 'Bob')))
    .returning({ title: book.title, name: author.name });
  expect(joined).toEqual([{ title: 'Shells', name: 'Bob' }]);
  const copied = await db
    .insert(author)
    .select(
      db
        .select({
          id: sql<number>`${author.id} + 10`.as('id'),
          name: sql<string>`${author.name} || '2'`.as('name'),
          email: sql<null>`cast(null as text)`.as('email'),
          active: author.active,
          born: author.born,
          joined: author.joined,
          settings: author.settings,
          editor: author.editor,
        })
        .from(author),
    )
    .returning({ name: author.name });
  expect(copied).toHaveLength(3);
  const gone = await db.delete(author).where(gt(author.id, 10)).returning({ id: author.id });
  expect(gone.map(({ id }) => id).toSorted()).toEqual([11, 12, 13]);
  expect((await db.delete(book)).rowsAffected).toBe(3);
});

test('on conflict: do nothing, do update, with a condition', async () => {
  const db = await withBooks();
  const again = { name: 'Ada', email: 'new@x.example' };
  expect(
    await db.insert(author).values(again).onConflictDoNothing({ target: author.name }).returning(),
  ).toEqual([]);
  const [updated] = await db
    .insert(author)
    .values(again)
    .onConflictDoUpdate({ target: author.name, set: { email: sql`excluded.email` } })
    .returning({ id: author.id, email: author.email });
  expect(updated).toEqual({ id: 1, email: 'new@x.example' });
  const kept = await db
    .insert(author)
    .values({ ...again, email: 'other@x.example' })
    .onConflictDoUpdate({
      target: author.name,
      set: { email: sql`excluded.email` },
      setWhere: sql`${author.id} > 1`,
    })
    .returning();
  expect(kept).toEqual([]);
  await expect(db.insert(author).values(again)).rejects.toMatchObject({
    cause: { name: 'NacreError', kind: 'constraint', table: 'author' },
  });
});

test('prepared statements take placeholders', async () => {
  const db = await withBooks();
  const byTitle = db
    .select({ id: book.id })
    .from(book)
    .where(ilike(book.title, sql.placeholder('title')))
    .limit(sql.placeholder('limit'))
    .prepare('by_title');
  expect(await byTitle.execute({ title: 's%', limit: 5 })).toEqual([{ id: 12 }]);
  expect(await byTitle.execute({ title: '%', limit: 2 })).toHaveLength(2);
  const add = db
    .insert(author)
    .values({ name: sql.placeholder('name'), born: sql.placeholder('born') })
    .returning({ id: author.id, born: author.born })
    .prepare('add');
  const born = new Date('1900-01-01');
  expect(await add.execute({ name: 'Cyd', born })).toEqual([{ id: 3, born }]);
});

test('raw SQL', async () => {
  const db = await withBooks();
  const { rows } = await db.execute<{ n: bigint }>(
    sql`select count(*) as n from ${book} where ${book.author} = ${1}`,
  );
  expect(rows).toEqual([{ n: 2n }]);
});

test('the logger sees every statement, and true prints them', async () => {
  const queries: [string, unknown[]][] = [];
  const db = await empty({ logQuery: (text, parameters) => void queries.push([text, parameters]) });
  await db.execute(sql`select ${7} as seven`);
  expect(queries).toEqual([['select $1 as seven', [7]]]);
});

test('names in snake case by option', async () => {
  const database = await connect('memory://');
  const { pgTable, integer } = await import('drizzle-orm/pg-core');
  const table = pgTable('t', { someValue: integer() });
  await database.exec('create table t (some_value int)');
  const db = drizzle(database, { casing: 'snake_case' });
  await db.insert(table).values({ someValue: 3 });
  expect(await db.select().from(table)).toEqual([{ someValue: 3 }]);
  await database.close();
});

test('differs from PostgreSQL in the order of nulls and in numeric without digits', async () => {
  const db = await withBooks();
  const emails = async (order: SQL) =>
    (await db.select({ email: author.email }).from(author).orderBy(order)).map(
      ({ email }) => email,
    );
  expect(await emails(asc(author.email))).toEqual([null, 'ada@x.example']);
  expect(await emails(sql`${author.email} nulls last`)).toEqual(['ada@x.example', null]);
  const { numeric, pgTable } = await import('drizzle-orm/pg-core');
  const t = pgTable('t', { n: numeric() });
  await db.execute(sql`create table t (n numeric)`);
  expect(await db.insert(t).values({ n: '1.23456' }).returning()).toEqual([{ n: '1.235' }]);
  expect(await db.select({ mean: avg(author.id) }).from(author)).toEqual([{ mean: '1.500000' }]);
});
