import type { Dialect } from 'kysely';
import type { Database } from 'nacredb';
import { NacreDialect, type NacreDialectConfig } from 'nacredb-kysely';
import { expect, expectTypeOf, test } from 'vitest';
import { withPets } from './testing.js';

test('the dialect takes a database or a function that opens one', () => {
  expectTypeOf<NacreDialect>().toExtend<Dialect>();
  expectTypeOf<NacreDialectConfig['database']>().toEqualTypeOf<
    Database | (() => Promise<Database>)
  >();
  // @ts-expect-error A URL is not a database.
  expect(() => new NacreDialect({ database: 'memory://' })).not.toThrow();
});

test('rows have the types of their columns', async () => {
  const db = await withPets();
  const rows = await db
    .selectFrom('pet')
    .innerJoin('person', 'person.id', 'pet.owner')
    .select(['pet.id', 'person.name as owner'])
    .orderBy('pet.id')
    .execute();
  expectTypeOf(rows).toEqualTypeOf<{ id: bigint; owner: string }[]>();
  expect(rows[0]).toEqual({ id: 1n, owner: 'Ada' });
  // @ts-expect-error There is no such column.
  await expect(db.selectFrom('pet').select('colour').execute()).rejects.toThrow();
});
