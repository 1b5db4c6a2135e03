import { Migrator, type Kysely, type Migration } from 'kysely';
import { expect, test } from 'vitest';
import { empty } from './testing.js';

const first: Migration = {
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('note')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('body', 'text', (column) => column.notNull())
      .execute();
    await db.insertInto('note').values({ body: 'first' }).execute();
  },
  down: async (db: Kysely<any>) => db.schema.dropTable('note').execute(),
};

const second: Migration = {
  up: async (db: Kysely<any>) => {
    await db.schema
      .alterTable('note')
      .addColumn('stars', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('note').renameColumn('body', 'content').execute();
    await db.schema
      .alterTable('note')
      .alterColumn('stars', (column) => column.setDefault(1))
      .execute();
    await db.schema.createIndex('note_stars').on('note').columns(['stars', 'id']).execute();
    await db.schema.createView('starred').as(db.selectFrom('note').select('id')).execute();
  },
  down: async (db: Kysely<any>) => {
    await db.schema.dropView('starred').execute();
    await db.schema.dropIndex('note_stars').on('note').execute();
    await db.schema.alterTable('note').renameColumn('content', 'body').execute();
    await db.schema.alterTable('note').dropColumn('stars').execute();
  },
};

function migrator(db: Kysely<any>, migrations: Record<string, Migration>): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => migrations } });
}

test('goes up to the latest migration, and down again', async () => {
  const db = empty();
  const both = migrator(db, { '1-note': first, '2-stars': second });
  const up = await both.migrateToLatest();
  expect(up.error).toBeUndefined();
  expect(up.results?.map(({ migrationName, status }) => [migrationName, status])).toEqual([
    ['1-note', 'Success'],
    ['2-stars', 'Success'],
  ]);
  await db.insertInto('note').values({ content: 'second' }).execute();
  expect(await db.selectFrom('note').selectAll().orderBy('id').execute()).toEqual([
    { id: 1, content: 'first', stars: 0 },
    { id: 2, content: 'second', stars: 1 },
  ]);
  expect((await both.migrateToLatest()).results).toEqual([]);
  expect((await both.migrateDown()).error).toBeUndefined();
  expect(await db.selectFrom('note').selectAll().orderBy('id').execute()).toEqual([
    { id: 1, body: 'first' },
    { id: 2, body: 'second' },
  ]);
  expect((await both.migrateDown()).error).toBeUndefined();
  expect(await db.introspection.getTables()).toEqual([]);
  expect((await both.getMigrations()).map(({ executedAt }) => executedAt)).toEqual([
    undefined,
    undefined,
  ]);
});

test('reports the migration that failed, and leaves nothing of it', async () => {
  const db = empty();
  const broken: Migration = { up: async (db) => db.schema.dropTable('missing').execute() };
  const failed = await migrator(db, { '1-note': first, '2-broken': broken }).migrateToLatest();
  expect(failed.error).toMatchObject({ kind: 'not_found' });
  expect(failed.results?.map(({ status }) => status)).toEqual(['Success', 'Error']);
  expect(await db.introspection.getTables()).toEqual([]);
  const mended = await migrator(db, { '1-note': first, '2-broken': second }).migrateToLatest();
  expect(mended.error).toBeUndefined();
  expect(mended.results).toHaveLength(2);
});

test('leaves a table as it was when a later change of it fails', async () => {
  const db = empty();
  expect((await migrator(db, { '1-note': first }).migrateToLatest()).error).toBeUndefined();
  const broken: Migration = {
    up: async (db) => {
      await db.schema.alterTable('note').addColumn('stars', 'integer').execute();
      await db.schema.createIndex('bodies').on('note').column('body').unique().execute();
      await db.insertInto('note').values({ body: 'first', stars: 1 }).execute();
    },
  };
  const failed = await migrator(db, { '1-note': first, '2-broken': broken }).migrateToLatest();
  expect(failed.error).toMatchObject({ kind: 'constraint' });
  expect(await db.selectFrom('note').selectAll().execute()).toEqual([{ id: 1, body: 'first' }]);
  const mended = await migrator(db, { '1-note': first, '2-broken': second }).migrateToLatest();
  expect(mended.error).toBeUndefined();
  expect(mended.results).toHaveLength(1);
});

test('goes on from the migration that failed without transactions', async () => {
  const db = empty();
  const broken: Migration = { up: async (db) => db.schema.dropTable('missing').execute() };
  const without = (second: Migration) =>
    new Migrator({
      db,
      provider: { getMigrations: async () => ({ '1-note': first, '2-broken': second }) },
      disableTransactions: true,
    });
  const failed = await without(broken).migrateToLatest();
  expect(failed.error).toMatchObject({ kind: 'not_found' });
  const mended = await without(second).migrateToLatest();
  expect(mended.error).toBeUndefined();
  expect(mended.results).toHaveLength(1);
});

test('migrators at the same time run every migration once', async () => {
  const db = empty();
  let runs = 0;
  const slow: Migration = {
    up: async (db: Kysely<any>) => {
      runs++;
      await db.schema.createTable('slow').addColumn('id', 'integer').execute();
      await new Promise((resolve) => setTimeout(resolve, 50));
    },
  };
  const results = await Promise.all(
    [1, 2, 3].map(() => migrator(db, { '1-slow': slow }).migrateToLatest()),
  );
  expect(results.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
  expect(runs).toBe(1);
});

test('runs migrations in a transaction', async () => {
  const db = empty();
  expect(db.getExecutor().adapter.supportsTransactionalDdl).toBe(true);
  const half: Migration = {
    up: async (db: Kysely<any>) => {
      await db.schema.createTable('half').addColumn('id', 'integer').execute();
      throw new Error('half');
    },
  };
  const { error } = await migrator(db, { '1-half': half }).migrateToLatest();
  expect(error).toMatchObject({ message: 'half' });
  expect(await db.introspection.getTables()).toEqual([]);
});
