/**
 * Input that cannot be used, from the caller's side: a typed error, nothing changed, and the same
 * database goes on, and opens again.
 */

import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { connect, type Database } from 'nacredb';
import { expect, test } from 'vitest';
import { connected, durable, expectKind } from './testing.js';

/** Makes a durable database, has something fail in it, and expects its rows, also after reopening. */
async function survives(fail: (db: Database) => Promise<void>): Promise<void> {
  const url = await durable.fresh();
  const db = await connect(url);
  await db.exec("create table t (id bigint primary key, name text); insert into t values (1, 'a')");
  await fail(db);
  const expected = [
    { id: 1n, name: 'a' },
    { id: 2n, name: 'b' },
  ];
  await db.query("insert into t values (2, 'b')");
  expect((await db.query('select * from t order by id')).rows).toEqual(expected);
  await db.close();
  const again = await connected(url);
  expect((await again.query('select * from t order by id')).rows).toEqual(expected);
}

const notData = (): void => {};

test('a function as a parameter', () =>
  survives(async (db) => {
    const insert = 'insert into t values (?, ?)';
    await expectKind(db.query(insert, [2, notData]), 'type');
    await expectKind(
      db.transaction(async (tx) => {
        await tx.query(insert, [3, 'c']);
        await tx.query(insert, [4, notData]);
      }),
      'type',
    );
    const prepared = await db.prepare(insert);
    await expectKind(prepared.run([2, Symbol('s')]), 'type');
    await expectKind(prepared.run([2, { deep: { at: notData, id: 1n } }]), 'type');
    await prepared.close();
  }));

test('a function in a row', () =>
  survives(async (db) => {
    await expectKind(db.insertRows('t', [{ id: 2, name: notData }]), 'type');
    await expectKind(db.insertRows('t', { id: [2], name: [notData] }), 'type');
  }));

test('an Arrow stream that is cut at any of its parts', () =>
  survives(async (db) => {
    const id = BigInt64Array.from({ length: 300 }, (_, i) => BigInt(i + 10));
    const whole = tableToIPC(tableFromArrays({ id, name: [...id].map((n) => `name ${n}`) }));
    for (let part = 1; part < 16; part++) {
      // The last bytes only say that the stream ends.
      const cut = whole.slice(0, Math.floor(((whole.length - 16) * part) / 16));
      await expectKind(db.insertArrow('t', cut), 'corrupt');
    }
    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield whole.slice(0, whole.length / 2);
      throw new Error('the connection broke');
    }
    await expect(db.insertArrow('t', breaking())).rejects.toThrow('the connection broke');
  }));

test('a function of a live query that throws', () =>
  survives(async (db) => {
    const errors: unknown[] = [];
    const live = await db.live.query(
      'select count(*) as n from t',
      [],
      () => {
        throw new Error('mine');
      },
      { onError: (error) => void errors.push(error) },
    );
    await db.exec("insert into t values (3, 'c'); delete from t where id = 3");
    await expect.poll(() => errors.length).toBeGreaterThan(1);
    expect(errors[0]).toMatchObject({ message: 'mine' });
    await live.unsubscribe();
  }));
