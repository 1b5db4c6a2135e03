/** What Drizzle can write and Nacre refuses, by the errors it gives: `docs/ORMS.md` lists them. */

import { applyMigrations } from 'nacredb-drizzle';
import { expect, test } from 'vitest';
import { book } from './schema.js';
import { migrated, type Books } from './testing.js';

type Refused = [what: string, kind: string, run: (db: Books) => Promise<unknown>];

const ddl =
  (statement: string) =>
  (db: Books): Promise<unknown> =>
    applyMigrations(db, [{ tag: '0000_a', when: 1, sql: statement }]);

const REFUSED: Refused[] = [
  [
    'a narrower type for a column',
    'unsupported',
    ddl('ALTER TABLE "book" ALTER COLUMN "title" SET DATA TYPE varchar(9);'),
  ],
  ['enums', 'unsupported', ddl(`CREATE TYPE "public"."mood" AS ENUM('good', 'bad');`)],
  ['schemas', 'unsupported', ddl('CREATE SCHEMA "shop";')],
  ['arrays', 'unsupported', ddl('CREATE TABLE "t" ("tags" text[]);')],
  [
    'times of day with a time zone',
    'unsupported',
    ddl('CREATE TABLE "t" ("at" time with time zone);'),
  ],
  [
    'partial indexes',
    'unsupported',
    ddl('CREATE INDEX "i" ON "book" USING btree ("title") WHERE "book"."id" > 5;'),
  ],
  [
    'materialised views',
    'unsupported',
    ddl('CREATE MATERIALIZED VIEW "v" AS (select "id" from "book");'),
  ],
  [
    'for share',
    'unsupported',
    async (db) => db.transaction((tx) => tx.select().from(book).for('share')),
  ],
];

test.each(REFUSED)('refuses %s', async (_, kind, run) => {
  const db = await migrated();
  const error = await run(db).then(
    () => expect.unreachable('it works'),
    (error: Error) => (error.name === 'NacreError' ? error : error.cause),
  );
  expect(error).toMatchObject({ name: 'NacreError', kind });
});
