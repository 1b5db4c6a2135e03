/** The shopping list in a database: its table, and what can be done with it. */

import { connect, type Database } from 'nacredb';

/** An item of the list. */
export interface Item {
  id: number;
  what: string;
  shop: string;
  bought: boolean;
}

/** Opens the list that this origin keeps. */
export async function openList(): Promise<Database> {
  const db = await connect('opfs://shopping', { types: { bigint: 'number' } });
  await db.exec(`
    create table if not exists item (
      id bigint primary key auto_increment,
      what text not null,
      shop text not null,
      bought boolean not null default false
    )
  `);
  return db;
}

export async function add(db: Database, what: string, shop: string): Promise<void> {
  await db.query('insert into item (what, shop) values (?, ?)', [what, shop]);
}

export async function setBought(db: Database, id: number, bought: boolean): Promise<void> {
  await db.query('update item set bought = ? where id = ?', [bought, id]);
}

export async function removeBought(db: Database): Promise<void> {
  await db.exec('delete from item where bought');
}
