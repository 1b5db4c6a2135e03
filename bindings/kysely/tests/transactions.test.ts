import { connect } from 'nacredb';
import { Kysely } from 'kysely';
import { NacreDialect } from 'nacredb-kysely';
import { expect, test } from 'vitest';
import { withPets } from './testing.js';

test('commits what the function did, and rolls back when it throws', async () => {
  const db = await withPets();
  const id = await db.transaction().execute(async (tx) => {
    const pet = await tx
      .insertInto('pet')
      .values({ owner: 2, name: 'Max', price: null })
      .returning('id')
      .executeTakeFirstOrThrow();
    // Beside the transaction, its row is not visible yet.
    expect(await db.selectFrom('pet').selectAll().where('id', '=', pet.id).execute()).toEqual([]);
    return pet.id;
  });
  expect(await db.selectFrom('pet').select('name').where('id', '=', id).execute()).toEqual([
    { name: 'Max' },
  ]);
  const failing = db.transaction().execute(async (tx) => {
    await tx.deleteFrom('pet').execute();
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await db.selectFrom('pet').selectAll().execute()).toHaveLength(4);
});

test('several transactions run at the same time, and a conflict is an error', async () => {
  const db = await withPets();
  const rename = (name: string, meanwhile: Promise<unknown>) =>
    db.transaction().execute(async (tx) => {
      await tx.selectFrom('pet').selectAll().execute();
      await meanwhile;
      await tx.updateTable('pet').set({ name }).where('id', '=', 1n).execute();
    });
  const first = rename('first', Promise.resolve());
  const second = rename('second', first);
  await first;
  await expect(second).rejects.toMatchObject({ kind: 'conflict', retryable: true });
  const pet = await db.selectFrom('pet').select('name').where('id', '=', 1n).executeTakeFirst();
  expect(pet).toEqual({ name: 'first' });
});

test('controlled transactions have savepoints', async () => {
  const db = await withPets();
  const tx = await db.startTransaction().execute();
  await tx.insertInto('pet').values({ owner: 1, name: 'One', price: null }).execute();
  const saved = await tx.savepoint('a "point"').execute();
  await saved.deleteFrom('pet').execute();
  await saved.rollbackToSavepoint('a "point"').execute();
  const kept = await tx.savepoint('kept').execute();
  await kept.insertInto('pet').values({ owner: 1, name: 'Two', price: null }).execute();
  await kept.releaseSavepoint('kept').execute();
  await tx.commit().execute();
  expect(await db.selectFrom('pet').selectAll().execute()).toHaveLength(5);
  const other = await db.startTransaction().execute();
  await other.deleteFrom('pet').execute();
  await other.rollback().execute();
  expect(await db.selectFrom('pet').selectAll().execute()).toHaveLength(5);
});

test('isolation levels up to repeatable read are accepted, others refused', async () => {
  const db = await withPets();
  for (const level of ['read committed', 'repeatable read', 'snapshot'] as const) {
    const count = await db
      .transaction()
      .setIsolationLevel(level)
      .setAccessMode('read write')
      .execute(async (tx) => (await tx.selectFrom('pet').selectAll().execute()).length);
    expect(count).toBe(3);
  }
  const never = async () => expect.unreachable();
  await expect(db.transaction().setIsolationLevel('serializable').execute(never)).rejects.toThrow(
    'serializable is not supported',
  );
  await expect(db.transaction().setAccessMode('read only').execute(never)).rejects.toThrow(
    'read only is not supported',
  );
});

test('a transaction of a closed database fails', async () => {
  const database = await connect('memory://');
  const db = new Kysely<any>({ dialect: new NacreDialect({ database }) });
  await database.close();
  const never = async () => expect.unreachable();
  await expect(db.transaction().execute(never)).rejects.toMatchObject({ kind: 'closed' });
});

test('locks rows with for update', async () => {
  const db = await withPets();
  const found = await db
    .transaction()
    .execute((tx) =>
      tx.selectFrom('pet').select('name').where('id', '=', 2n).forUpdate().execute(),
    );
  expect(found).toEqual([{ name: 'Tom' }]);
});
