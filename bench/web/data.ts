/** The rows of the comparison: the same in every system, made in the page before anything is timed. */

import type { Columns } from './system';

/** Words of the notes, one of them for each row. */
const WORDS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heath', 'inlet'];

/** The table's definition, in SQL that all systems read. */
export const createTable = (name: string, key = ' primary key'): string =>
  `create table ${name} (id bigint${key}, region integer, amount double precision, note text)`;

/** A number below `below`, without a pattern in the order of `at`. */
export const scattered = (at: number, below: number): number => (at * 7919 + 104_729) % below;

/** The first `rows` rows, in the order of their keys. */
export function makeColumns(rows: number): Columns {
  const id = new Int32Array(rows);
  const region = new Int32Array(rows);
  const amount = new Float64Array(rows);
  const note = new Array<string>(rows);
  for (let row = 0; row < rows; row += 1) {
    const other = scattered(row, rows);
    id[row] = row;
    region[row] = other % 20;
    amount[row] = (other % 100_000) / 4;
    note[row] = `a ${WORDS[other % WORDS.length]} of the usual length, number ${other}`;
  }
  return { id, region, amount, note };
}

/** Keys to read, all of which are there. */
export const makeKeys = (count: number, rows: number, round: number): number[] =>
  Array.from({ length: count }, (_, at) => scattered(at + round * 31, rows));
