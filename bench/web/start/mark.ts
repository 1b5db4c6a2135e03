/**
 * What each page of this folder does: opens a database, reads a row, and notes when it had it, in
 * milliseconds since the navigation. With `?create` it makes the database first.
 */

import { createTable } from '../data';
import type { System } from '../system';

const ROW = "insert into t values (1, 2, 0.5, 'the row that is read')";

export async function mark(opening: Promise<System>): Promise<void> {
  const system = await opening;
  if (location.search === '?create') {
    await system.exec('drop table if exists t');
    await system.exec(createTable('t'));
    await system.exec(ROW);
  }
  const rows = await system.query('select id, region, amount, note from t where id = ?', [1]);
  Object.assign(window, { started: { ms: performance.now(), rows } });
}
