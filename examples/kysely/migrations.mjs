/** The migrations of the pantry, in the order of their names. Kysely's `Migrator` runs each once. */

import { sql } from 'kysely';

export const migrations = {
  '2026-11-01-shelves': {
    async up(db) {
      await db.schema
        .createTable('item')
        .addColumn('name', 'varchar(60)', (column) => column.primaryKey())
        .addColumn('amount', 'integer', (column) => column.notNull().check(sql`amount >= 0`))
        .execute();
    },
    async down(db) {
      await db.schema.dropTable('item').execute();
    },
  },
  '2026-11-20-history': {
    async up(db) {
      await db.schema
        .createTable('change')
        .ifNotExists()
        .addColumn('id', 'bigserial', (column) => column.primaryKey())
        .addColumn('item', 'varchar(60)', (column) => column.notNull())
        .addColumn('amount', 'integer', (column) => column.notNull())
        .addColumn('made', 'timestamp', (column) =>
          column.notNull().defaultTo(sql`current_timestamp`),
        )
        .execute();
      await db.schema
        .createIndex('change_item')
        .ifNotExists()
        .on('change')
        .column('item')
        .execute();
    },
    async down(db) {
      await db.schema.dropTable('change').execute();
    },
  },
};
