/** Fixtures of the dialect's tests: a Kysely over a database in memory with two tables. */

import { Kysely, type Generated } from 'kysely';
import { connect } from 'nacredb';
import { NacreDialect } from 'nacredb-kysely';
import { afterEach } from 'vitest';

/** The tables of the tests. */
export interface Tables {
  person: {
    id: Generated<number>;
    name: string;
    born: Date | null;
    notes: unknown;
    active: Generated<boolean>;
  };
  pet: { id: Generated<bigint>; owner: number; name: string; price: string | null };
}

const open: Kysely<any>[] = [];

/** A Kysely over an empty database. It is destroyed after the test. */
export function empty<T = any>(): Kysely<T> {
  const db = new Kysely<T>({ dialect: new NacreDialect({ database: () => connect('memory://') }) });
  open.push(db);
  return db;
}

/** A Kysely over two persons and three pets. */
export async function withPets(): Promise<Kysely<Tables>> {
  const db = empty<Tables>();
  await db.schema
    .createTable('person')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('name', 'varchar(50)', (column) => column.notNull().unique())
    .addColumn('born', 'date')
    .addColumn('notes', 'json')
    .addColumn('active', 'boolean', (column) => column.notNull().defaultTo(true))
    .execute();
  await db.schema
    .createTable('pet')
    .ifNotExists()
    .addColumn('id', 'bigserial', (column) => column.primaryKey())
    .addColumn('owner', 'integer', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('price', 'decimal(8, 2)')
    .execute();
  await db.schema.createIndex('pet_owner').on('pet').column('owner').execute();
  await db
    .insertInto('person')
    .values([
      { name: 'Ada', born: new Date('1815-12-10'), notes: { likes: ['engines'] } },
      { name: 'Bob', born: null, notes: null },
    ])
    .execute();
  await db
    .insertInto('pet')
    .values([
      { owner: 1, name: 'Rex', price: '10.50' },
      { owner: 1, name: 'Tom', price: null },
      { owner: 2, name: 'Kim', price: '3.00' },
    ])
    .execute();
  return db;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((db) => db.destroy()));
});
