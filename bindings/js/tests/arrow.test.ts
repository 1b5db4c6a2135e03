import { tableFromIPC } from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

describe.each(places)('Arrow from $name', (place) => {
  test('is a stream that Arrow reads', async () => {
    const db = await withNames(place, 'a', 'b');
    await db.query('insert into t values (3, null)');
    const table = tableFromIPC(await db.queryArrow('select id, name from t order by id'));
    expect(table.schema.fields.map((field) => `${field.name} ${field.type}`)).toEqual([
      'id Int64',
      'name Utf8',
    ]);
    expect([...table.getChild('id')!]).toEqual([1n, 2n, 3n]);
    expect([...table.getChild('name')!]).toEqual(['a', 'b', null]);
  });

  test('is a stream even without rows', async () => {
    const db = await withNames(place);
    const table = tableFromIPC(await db.queryArrow('select * from t where id = ?', [1]));
    expect(table.numRows).toBe(0);
    expect(table.numCols).toBe(2);
    await expectKind(db.queryArrow('select * from nowhere'), 'not_found');
  });
});
