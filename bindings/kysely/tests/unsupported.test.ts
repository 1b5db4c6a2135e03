/** What Kysely can write and Nacre refuses, by the errors it gives: `docs/ORMS.md` lists them. */

import { sql, type Kysely } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import { expect, test } from 'vitest';
import { withPets } from './testing.js';

type Refused = [what: string, kind: string, run: (db: Kysely<any>) => Promise<unknown>];

const REFUSED: Refused[] = [
  [
    'another type for a column',
    'unsupported',
    (db) =>
      db.schema
        .alterTable('pet')
        .alterColumn('name', (column) => column.setDataType('varchar(9)'))
        .execute(),
  ],
  [
    'a primary key for a table that has none',
    'unsupported',
    async (db) => {
      await db.schema.createTable('t').addColumn('id', 'integer').execute();
      await db.schema.alterTable('t').addPrimaryKeyConstraint('t_key', ['id']).execute();
    },
  ],
  [
    'partial indexes',
    'unsupported',
    (db) =>
      db.schema.createIndex('i').on('pet').column('price').where('price', 'is', null).execute(),
  ],
  ['schemas', 'unsupported', (db) => db.schema.createSchema('s').execute()],
  ['enums', 'unsupported', (db) => db.schema.createType('mood').asEnum(['good']).execute()],
  [
    'times of day with a time zone',
    'unsupported',
    (db) =>
      db.schema
        .createTable('t')
        .addColumn('at', sql`timetz`)
        .execute(),
  ],
  [
    'the helpers of JSON',
    'not_found',
    (db) =>
      db
        .selectFrom('person')
        .select((eb) => jsonArrayFrom(eb.selectFrom('pet').select('name')).as('pets'))
        .execute(),
  ],
  [
    'a text parameter in arithmetic',
    'type',
    (db) =>
      db
        .updateTable('pet')
        .set((eb) => ({ price: eb('price', '+', '1') }))
        .execute(),
  ],
];

test.each(REFUSED)('refuses %s', async (_, kind, run) => {
  const db = await withPets();
  await expect(run(db)).rejects.toMatchObject({ name: 'NacreError', kind });
});
