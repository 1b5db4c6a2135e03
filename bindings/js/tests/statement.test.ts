import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

describe.each(places)('a prepared statement in $name', (place) => {
  test('gets, answers all, iterates', async () => {
    const db = await withNames(place, 'a', 'b', 'c');
    const statement = await db.prepare<{ name: string }>(
      'select name from t where id >= ? order by id',
    );
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
    const results = await Promise.all(
      [1, 2, 3].map((id) => insert.run([id, id === 2 ? null : `n${id}`])),
    );
    expect(results.map((result) => result.rowsAffected)).toEqual([1, 1, 1]);
    expect(
      (await db.query('select name from t order by id')).rows.map((row) => row['name']),
    ).toEqual(['n1', null, 'n3']);
    await expectKind(insert.run([1, 'twice']), 'constraint');
    await expectKind(insert.run([1]), 'type');
  });

  test('takes parameters by name', async () => {
    const db = await withNames(place, 'a', 'b');
    const select = await db.prepare(
      'select name from t where id = :id or name = :name order by id',
    );
    const found = [{ name: 'a' }, { name: 'b' }];
    expect(await select.all({ name: 'b', id: 1 })).toEqual(found);
    // An object without a prototype, such as the groups of a regular expression.
    const groups = /(?<id>\d)(?<name>.)/.exec('1b')!.groups!;
    expect(await select.all(groups)).toEqual(found);
    expect((await db.query('select name from t where id = :id', groups)).rows).toEqual([
      { name: 'a' },
    ]);
    expect((await select.iterate({ id: 2, name: 'none' }).next()).value).toEqual({ name: 'b' });
    await expectKind(select.run({ id: 1 }), 'type');
    const positional = await db.prepare('select name from t where id = ?');
    await expectKind(positional.run({ id: 1 }), 'type');
  });

  test('finishes calls made before it was closed', async () => {
    const db = await withNames(place, 'a');
    const update = await db.prepare('update t set name = ? where id = 1');
    let calls: Promise<unknown>[] = [];
    await db.transaction(async (tx) => {
      await tx.query("update t set name = 'inside' where id = 1");
      // The first call waits for the transaction, the others wait for the first.
      calls = [update.run(['first']), update.run(['second']), update.close()];
      await tx.query('select 1');
    });
    await Promise.all(calls);
    await expectKind(update.run(['third']), 'closed');
    expect((await db.query('select name from t')).rows).toEqual([{ name: 'second' }]);
  });

  test('ends with its transaction', async () => {
    const db = await withNames(place, 'a');
    const kept = await db.transaction(async (tx) => {
      const insert = await tx.prepare('insert into t values (?, ?)');
      await insert.run([2, 'b']);
      return insert;
    });
    await expectKind(kept.run([3, 'c']), 'closed');
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  });

  test('is refused if invalid, and after closing', async () => {
    const db = await withNames(place, 'a');
    await expectKind(db.prepare('select nothing from t'), 'not_found');
    await expectKind(db.prepare('select 1; select 2'), 'syntax');
    const statement = await db.prepare('select 1 as one');
    await statement.close();
    await statement.close();
    await expectKind(statement.get(), 'closed');
    const left = await db.prepare('select 1 as one');
    await db.close();
    await left.close();
    await expectKind(left.get(), 'closed');
  });
});
