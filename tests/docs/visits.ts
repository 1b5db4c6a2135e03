/** The database `db` of the documentation's examples. */

import { connect, type ConnectOptions, type Database } from 'nacredb';

/** Opens a database in memory with the rows that the documentation of `Database` shows. */
export async function visits(options?: ConnectOptions): Promise<Database> {
  const db = await connect('memory://', options);
  await db.exec(`
    create table visit (id bigint primary key, page text, ms int);
    insert into visit values (1, 'home', 120), (2, 'docs', 80), (3, 'home', 95);
  `);
  return db;
}
