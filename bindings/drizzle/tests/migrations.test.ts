import * as fs from 'node:fs';
import * as path from 'node:path';
import { applyMigrations } from 'nacredb-drizzle';
import { migrate } from 'nacredb-drizzle/migrator';
import { expect, test } from 'vitest';
import { empty, emptyFolder, generate } from './testing.js';

const FIRST = `
  import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core';
  export const note = pgTable('note', { id: serial().primaryKey(), body: text().notNull() });
  export const tag = pgTable('tag', { id: integer().primaryKey() });
`;
const SECOND = `
  import { index, integer, pgTable, serial, text } from 'drizzle-orm/pg-core';
  export const note = pgTable(
    'note',
    {
      id: serial().primaryKey(),
      body: text(),
      stars: integer().notNull().default(0),
      parent: integer().references(() => note.id),
    },
    (table) => [index('note_stars').on(table.stars.desc())],
  );
`;

/** Generates two migrations beside this file, where drizzle-kit finds Drizzle. */
function twoMigrations(): string {
  const folder = emptyFolder();
  const out = path.relative(import.meta.dirname, folder);
  const schema = `tmp-schema-${process.pid}.ts`;
  const file = path.join(import.meta.dirname, schema);
  try {
    fs.writeFileSync(file, FIRST);
    generate(schema, out, 'first');
    fs.writeFileSync(file, SECOND);
    generate(schema, out, 'second');
  } finally {
    fs.rmSync(file, { force: true });
  }
  return folder;
}

/** drizzle-kit is a process of its own, which takes seconds where others run. */
const timeout = 120_000;

test('the migrations of the other tests are those of their schema', { timeout }, () => {
  expect(generate('schema.ts', 'migrations', 'more')).toContain('No schema changes');
});

test('applies the migrations of drizzle-kit, each once', { timeout }, async () => {
  const migrationsFolder = twoMigrations();
  const db = await empty();
  await migrate(db, { migrationsFolder });
  await migrate(db, { migrationsFolder });
  await db.$client.exec('insert into note (body) values (null)');
  expect((await db.$client.query('select * from note')).rows).toEqual([
    { id: 1, body: null, stars: 0, parent: null },
  ]);
  await expect(db.$client.exec('insert into note (parent) values (9)')).rejects.toMatchObject({
    kind: 'constraint',
    sqlstate: '23503',
  });
  expect((await db.$client.query('show indexes from note')).rowCount).toBeGreaterThan(1);
  await expect(db.$client.query('select * from tag')).rejects.toMatchObject({ kind: 'not_found' });
  const applied = await db.$client.query(
    'select tag from __drizzle_migrations order by created_at',
  );
  expect(applied.rows).toEqual([{ tag: '0000_first' }, { tag: '0001_second' }]);
});

test('goes on at the statement that failed', async () => {
  const db = await empty();
  const sql = (second: string) =>
    `create table a (id int);\n--> statement-breakpoint\n${second};--> statement-breakpoint\ncreate table c (id int);`;
  const migration = (second: string) => [{ tag: '0000_a', when: 1, sql: sql(second) }];
  await expect(applyMigrations(db, migration('create b'))).rejects.toMatchObject({
    kind: 'syntax',
  });
  await applyMigrations(db, migration('create table b (id int)'), {});
  const { rows } = await db.$client.query(
    "select table_name as name from information_schema.tables where table_name <> '__drizzle_migrations' order by 1",
  );
  expect(rows).toEqual([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
});

test('runs in the order in which they were generated, in a table by option', async () => {
  const db = await empty();
  const config = { migrationsTable: 'my "migrations"' };
  await applyMigrations(
    db,
    [
      { tag: '0001_b', when: 2, sql: 'alter table a add column b int' },
      { tag: '0000_a', when: 1, sql: 'create table a (id int)' },
    ],
    config,
  );
  const { rows } = await db.$client.query('select tag, statements, hash from "my ""migrations"""');
  expect(rows).toEqual([
    { tag: '0000_a', statements: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { tag: '0001_b', statements: 1, hash: expect.any(String) },
  ]);
});
