// Formats values for cells and for CSV.

import type { StatementResult, Column } from '../database/types';

const NUMERIC =
  /^(tinyint|smallint|int|integer|bigint|u?int\d*|float|double|real|decimal|numeric)\b/i;

export const isNumeric = (column: Column): boolean => NUMERIC.test(column.type);

/** A value as text. Null is drawn differently and does not come here. */
export function toText(value: unknown, type: string): string {
  if (value instanceof Date) {
    const iso = value.toISOString();
    return /^date$/i.test(type)
      ? iso.slice(0, 10)
      : iso.replace('T', ' ').replace(/(\.000)?Z$/, '');
  }
  if (value instanceof Uint8Array)
    return `x'${Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')}'`;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return String(value);
}

/** The result as CSV (RFC 4180). A null is an empty field, and an empty text a quoted one. */
export function toCsv({ columns, rows }: StatementResult): string {
  const lines = [columns.map((column) => quoted(column.name)).join(',')];
  for (const row of rows) {
    lines.push(
      row
        .map((value, index) => (value == null ? '' : quoted(toText(value, columns[index]!.type))))
        .join(','),
    );
  }
  return `${lines.join('\r\n')}\r\n`;
}

const quoted = (text: string): string =>
  text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
