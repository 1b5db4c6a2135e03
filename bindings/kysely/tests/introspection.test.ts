import { expect, test } from 'vitest';
import { withPets } from './testing.js';

test('lists tables, views and columns', async () => {
  const db = await withPets();
  await db.schema.createView('cheap').as(db.selectFrom('pet').select('name')).execute();
  expect(await db.introspection.getSchemas()).toEqual([{ name: 'main' }]);
  const tables = await db.introspection.getTables();
  expect(tables.map(({ name, schema, isView }) => [name, schema, isView])).toEqual([
    ['cheap', 'main', true],
    ['person', 'main', false],
    ['pet', 'main', false],
  ]);
  const column = (name: string, dataType: string, more: object = {}) => {
    const usual = { isNullable: true, isAutoIncrementing: false, hasDefaultValue: false };
    return { name, dataType, ...usual, ...more };
  };
  expect(tables[1]?.columns).toEqual([
    column('id', 'INT', { isNullable: false, isAutoIncrementing: true }),
    column('name', 'VARCHAR(50)', { isNullable: false }),
    column('born', 'DATE'),
    column('notes', 'JSON'),
    column('active', 'BOOLEAN', { isNullable: false, hasDefaultValue: true }),
  ]);
  expect(tables[0]?.columns.map(({ name }) => name)).toEqual(['name']);
});
