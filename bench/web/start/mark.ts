/**
 * What each page of this folder does: opens a database, reads a row, and notes when it had it, in
 * milliseconds since the navigation. With `?create` it makes the database first, and then reads for a
 * while, so that the browser keeps compiled code as it does for pages that people come back to.
 */

import { createTable } from '../data';
import type { System } from '../system';

/** Calls after which browsers compile code again, for speed, and keep it. */
const CALLS = 2000;
const SELECT = 'select id, region, amount, note from t where id = ?';
const ROW = "insert into t values (1, 2, 0.5, 'the row that is read')";

export async function mark(opening: Promise<System>): Promise<void> {
  const system = await opening;
  if (location.search === '?create') {
    await system.exec('drop table if exists t');
    await system.exec(createTable('t'));
    await system.exec(ROW);
    for (let call = 0; call < CALLS; call += 1) await system.query(SELECT, [1]);
  }
  const rows = await system.query(SELECT, [1]);
  Object.assign(window, { started: { ms: performance.now(), rows } });
}
