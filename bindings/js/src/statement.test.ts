import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

describe.each(places)('a prepared statement in $name', (place) => {
  test('gets, answers all, iterates', async () => {
    const db = await withNames(place, 'a', 'b', 'c');
    const statement = await db.prepare<{ name: string }>('select name from t where id >= ? order by id');
    expect(statement.columns).toEqual([{ name: 'name', type: 'TEXT' }]);
    expect(statement.parameters).toHaveLength(1);
    expect(await statement.get([2])).toEqual({ name: 'b' });
    expect(await statement.get([9])).toBeUndefined();
    expect(await statement.all([2])).toEqual([{ name: 'b' }, { name: 'c' }]);
    const seen: string[] = [];
    for await (const row of statement.iterate([1])) {
      seen.push(row.name);
    }
    expect(seen).toEqual(['a', 'b', 'c']);
    expect((await statement.run([1])).columns).toEqual(statement.columns);
  });

  test('writes with other parameters each time', async () => {
    const db = await withNames(place);
    const insert = await db.prepare('insert into t values (?, ?)');
    const results = await Promise.all([1, 2, 3].map((id) => insert.run([id, id === 2 ? null : `n${id}`])));
    expect(results.map((result) => result.rowsAffected)).toEqual([1, 1, 1]);
    expect((await db.query('select name from t order by id')).rows.map((row) => row['name'])).toEqual([
      'n1',
      null,
      'n3',
    ]);
    await expectKind(insert.run([1, 'twice']), 'constraint');
    await expectKind(insert.run([1]), 'type');
  });

  test('lives in a transaction, and no longer', async () => {
    const db = await withNames(place, 'a');
    const kept = await db.transaction(async (tx) => {
      const insert = await tx.prepare('insert into t values (?, ?)');
      await insert.run([2, 'b']);
      return insert;
    });
    await expectKind(kept.run([3, 'c']), 'closed');
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  });

  test('is refused when wrong and after closing', async () => {
    const db = await withNames(place, 'a');
    await expectKind(db.prepare('select nothing from t'), 'not_found');
    await expectKind(db.prepare('select 1; select 2'), 'syntax');
    const statement = await db.prepare('select 1 as one');
    await statement.close();
    await statement.close();
    await expectKind(statement.get(), 'closed');
  });
});
