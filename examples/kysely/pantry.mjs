/** A pantry in a database: what is on its shelves, and every change, in one transaction each. */

import { Kysely, Migrator } from 'kysely';
import { connect, NacreError } from 'nacredb';
import { NacreDialect } from 'nacredb-kysely';
import { migrations } from './migrations.mjs';

/** Opens the pantry that is kept in a folder, and brings its tables up to date. */
export async function openPantry(folder) {
  const db = new Kysely({ dialect: new NacreDialect({ database: () => connect(folder) }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error, results } = await migrator.migrateToLatest();
  if (error !== undefined) {
    await db.destroy();
    throw error;
  }
  return new Pantry(db, results?.map(({ migrationName }) => migrationName) ?? []);
}

class Pantry {
  #db;
  /** Names of the migrations that this call of `openPantry` ran. */
  migrated;

  constructor(db, migrated) {
    this.#db = db;
    this.migrated = migrated;
  }

  /** Puts some of an item on the shelf and answers how much is there now. */
  async put(name, amount) {
    return this.#db.transaction().execute(async (tx) => {
      const item = await tx
        .insertInto('item')
        .values({ name, amount })
        .onConflict((conflict) =>
          conflict
            .column('name')
            .doUpdateSet((eb) => ({ amount: eb('item.amount', '+', eb.ref('excluded.amount')) })),
        )
        .returning('amount')
        .executeTakeFirstOrThrow();
      await tx.insertInto('change').values({ item: name, amount }).execute();
      return item.amount;
    });
  }

  /** Takes some away. Answers what is left, or undefined, with nothing changed, if it is too little. */
  async take(name, amount) {
    try {
      return await this.#db.transaction().execute(async (tx) => {
        await tx.insertInto('change').values({ item: name, amount: -amount }).execute();
        const item = await tx
          .updateTable('item')
          .set((eb) => ({ amount: eb('amount', '-', amount) }))
          .where('name', '=', name)
          .returning('amount')
          .executeTakeFirstOrThrow(() => new Error(`there is no ${name}`));
        return item.amount;
      });
    } catch (error) {
      if (error instanceof NacreError && error.kind === 'constraint') {
        return undefined;
      }
      throw error;
    }
  }

  /** Every item with its amount, how often it changed, and when it changed last. */
  async report() {
    return this.#db
      .selectFrom('item')
      .leftJoin('change', 'change.item', 'item.name')
      .select(({ fn }) => [
        'item.name',
        'item.amount',
        fn.count('change.id').as('changes'),
        fn.max('change.made').as('last'),
      ])
      .groupBy(['item.name', 'item.amount'])
      .orderBy('changes', 'desc')
      .orderBy('item.name')
      .execute();
  }

  close() {
    return this.#db.destroy();
  }
}
