/** JavaScript rows or columns into a table, by the bulk path. */

import { nacreError } from '../../../worker/shared/errors.js';
import type { WireValues } from '../../../worker/shared/wire.js';
import type { Client } from './client.js';
import { load, type InsertOptions, type Take } from './load.js';
import { packTexts } from './pack-texts.js';
import { copyValue } from '../../../worker/shared/copy-value.js';
import type { Parameter } from './types.js';

/** An array of numbers. */
export type NumberArray =
  | Float64Array
  | Float32Array
  | Int32Array
  | Int16Array
  | Int8Array
  | Uint32Array
  | Uint16Array
  | Uint8Array
  | Uint8ClampedArray
  | BigInt64Array
  | BigUint64Array;

/** Rows by column: arrays of one length, by the names of columns. */
export type Columns<Name extends string = string> = Readonly<
  Partial<Record<[Name] extends [never] ? string : Name, readonly Parameter[] | NumberArray>>
>;

/** Rows as objects by column name, all at once or one after another. */
export type Rows<R extends object = object> = Iterable<R> | AsyncIterable<R>;

/** Values that are sent in one message: few, so that other messages wait for a few milliseconds. */
const PIECE_VALUES = 4096;

/** Rows of one message. */
function rowsOfPiece(columns: number): number {
  return Math.max(1, Math.floor(PIECE_VALUES / columns));
}

/** Inserts rows; answers the number of rows inserted or replaced. */
export function insertRows(
  client: Client,
  table: string,
  rows: Rows | Columns,
  options: InsertOptions = {},
): Promise<number> {
  return load(client, table, options, countOf(rows), (take) => {
    if (typeof rows !== 'object' || rows === null) {
      throw nacreError('type', 'rows must be objects, or arrays by the names of columns');
    }
    const isIterable = Symbol.iterator in rows || Symbol.asyncIterator in rows;
    return isIterable ? sendRows(rows as Rows, take) : sendColumns(rows as Columns, take);
  });
}

/** Number of rows; undefined if only reading them can tell. */
function countOf(rows: Rows | Columns): number | undefined {
  if (typeof rows !== 'object' || rows === null || Symbol.asyncIterator in rows) {
    return undefined;
  }
  const counted = Symbol.iterator in rows ? rows : Object.values(rows)[0];
  return (counted as ArrayLike<unknown> | undefined)?.length;
}

async function sendColumns(given: Columns, take: Take): Promise<void> {
  const names = Object.keys(given);
  const columns = names.map((name) => given[name]!);
  const count = columns[0]?.length ?? 0;
  columns.forEach((column, i) => {
    if (!Array.isArray(column) && !ArrayBuffer.isView(column)) {
      throw nacreError('type', `column ${names[i]!} is no array`);
    }
    if (column.length !== count) {
      throw nacreError(
        'type',
        `column ${names[i]!} has ${column.length} values, column ${names[0]!} has ${count}`,
      );
    }
  });
  const rows = rowsOfPiece(columns.length);
  for (let at = 0; at < count; at += rows) {
    const end = Math.min(at + rows, count);
    const piece = columns.map((column, i) => part(column, at, end, names[i]!));
    await take('loadColumns', end - at, names, piece);
  }
}

function part(
  column: readonly Parameter[] | NumberArray,
  start: number,
  end: number,
  name: string,
): WireValues {
  if (ArrayBuffer.isView(column)) {
    return column.slice(start, end);
  }
  const values = column.slice(start, end) as readonly Parameter[];
  return packTexts(values) ?? values.map((value, i) => copyValue(value, cell(name, start + i)));
}

async function sendRows(rows: Rows, take: Take): Promise<void> {
  const collected = new Collected();
  if (Symbol.iterator in rows) {
    for (const row of rows) {
      if (collected.add(row)) {
        await collected.send(take);
      }
    }
  } else {
    for await (const row of rows) {
      if (collected.add(row)) {
        await collected.send(take);
      }
    }
  }
  await collected.send(take);
}

/** Rows that were not sent yet, by column. The first row says which columns there are. */
class Collected {
  #names: string[] = [];
  #columns: unknown[][] = [];
  #sent = 0;
  #rows = 0;

  /** Adds a row; answers whether there are enough to send. */
  add(row: unknown): boolean {
    const at = this.#sent + this.#rows;
    if (typeof row !== 'object' || row === null) {
      throw nacreError('type', `row ${at + 1} is no object`);
    }
    if (at === 0) {
      this.#names = Object.keys(row);
      this.#columns = this.#names.map(() => []);
      if (this.#names.length === 0) {
        throw nacreError('type', 'the first row has no columns');
      }
    }
    this.#names.forEach((name, i) => {
      const value = (row as Record<string, unknown>)[name];
      this.#columns[i]!.push(copyValue(value, cell(name, at)));
    });
    const unknown = Object.keys(row).find((name) => !this.#names.includes(name));
    if (unknown !== undefined) {
      throw nacreError('type', `row ${at + 1} has a column ${unknown}, which the first row lacks`);
    }
    return ++this.#rows === rowsOfPiece(this.#names.length);
  }

  async send(take: Take): Promise<void> {
    if (this.#rows === 0) {
      return;
    }
    const rows = this.#rows;
    const columns = this.#columns.map((values) => packTexts(values) ?? values);
    this.#sent += rows;
    this.#rows = 0;
    this.#columns = this.#names.map(() => []);
    await take('loadColumns', rows, this.#names, columns);
  }
}

function cell(column: string, row: number): string {
  return `column ${column}, row ${row + 1}`;
}
