/** The lines of a table of TPC-H, whose fields end with `|`, as columns. */

import type { TableDefinition } from '../../web/src/load/tables';
import type { Columns } from './system';

/** Columns of at most `most` rows each: integers as numbers, everything else as text. */
export function* toColumns(table: TableDefinition, text: string, most: number): Generator<Columns> {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (let at = 0; at < lines.length; at += most) {
    yield columnsOf(table, lines.slice(at, at + most));
  }
}

function columnsOf({ columns }: TableDefinition, lines: string[]): Columns {
  const values = columns.map(({ field }) =>
    field === 'integer' ? new Int32Array(lines.length) : new Array<string>(lines.length),
  );
  lines.forEach((line, row) => {
    const fields = line.split('|');
    columns.forEach(({ field }, at) => {
      values[at]![row] = field === 'integer' ? Number(fields[at]) : fields[at]!;
    });
  });
  return Object.fromEntries(columns.map(({ name }, at) => [name, values[at]!]));
}

/** The text as CSV with `|` between fields, without the one after the last. */
export const asCsv = (text: string): string => text.replaceAll('|\n', '\n');
