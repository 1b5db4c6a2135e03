// Reads Parquet, one row group at a time. The module that decodes it is fetched with this file.

import {
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type AsyncBuffer,
  type SchemaTree,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

import { columnNames, type Cell } from './infer';
import { FileError, PIECE_ROWS, type Piece } from './messages';

/** Digits that survive as a double, which is what the decoder makes of decimals. */
const EXACT_DIGITS = 15;
const MICROSECONDS = 1000n;

const parsers = {
  dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10),
  timestampFromMilliseconds: (ms: bigint) => timestamp(ms * MICROSECONDS),
  timestampFromMicroseconds: (us: bigint) => timestamp(us),
  timestampFromNanoseconds: (ns: bigint) => timestamp(ns / 1000n),
};

function timestamp(us: bigint): string {
  const below = ((us % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = Number((us - below) / 1_000_000n);
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ');
  return `${whole}.${below.toString().padStart(6, '0')}`;
}

export async function* readParquet(file: File): AsyncGenerator<Piece> {
  try {
    yield* read(file);
  } catch (error) {
    if (error instanceof FileError) throw error;
    throw new FileError('parquet', error instanceof Error ? error.message : String(error));
  }
}

async function* read(file: File): AsyncGenerator<Piece> {
  const buffer: AsyncBuffer = {
    byteLength: file.size,
    slice: (from, to) => file.slice(from, to).arrayBuffer(),
  };
  const metadata = await parquetMetadataAsync(buffer);
  const { children } = parquetSchema(metadata);
  if (children.length === 0) throw new FileError('empty', 'the file has no columns');
  const names = columnNames(children.map(({ element }) => element.name));
  const types = children.map(sqlType);
  yield { kind: 'table', columns: names.map((name, at) => ({ name, type: types[at]! })) };
  const total = Number(metadata.num_rows);
  let done = 0;
  for (const group of metadata.row_groups) {
    const rowStart = done;
    const rowEnd = done + Number(group.num_rows);
    const rows = await parquetReadObjects({
      file: buffer,
      metadata,
      rowStart,
      rowEnd,
      compressors,
      parsers,
    });
    for (let at = 0; at < rows.length; at += PIECE_ROWS) {
      const piece = rows.slice(at, at + PIECE_ROWS);
      done += piece.length;
      const values = children.map(({ element }, i): [string, Cell[]] => [
        names[i]!,
        piece.map((row) => cell(row[element.name], types[i]!)),
      ]);
      const columns = Object.fromEntries(values);
      yield { kind: 'rows', columns, count: piece.length, fraction: done / total };
    }
  }
}

/** The SQL type of a column. Lists, maps and groups become JSON. */
function sqlType({ element, children }: SchemaTree): string {
  if (children.length > 0 || element.repetition_type === 'REPEATED') return 'json';
  const logical = element.logical_type?.type;
  const kind = logical ?? element.converted_type;
  if (kind === 'DECIMAL') {
    const { precision = 0, scale = 0 } = element;
    return precision <= EXACT_DIGITS ? `decimal(${precision}, ${scale})` : 'double';
  }
  if (kind === 'DATE') return 'date';
  if (kind === 'JSON' || kind === 'BSON') return 'json';
  if (kind?.startsWith('TIMESTAMP')) return 'timestamp(6)';
  if (kind?.startsWith('TIME')) {
    throw new FileError('unsupported', `column ${element.name} has the Parquet type ${kind}`);
  }
  switch (element.type) {
    case 'BOOLEAN':
      return 'boolean';
    case 'INT32':
      return kind === 'UINT_32' ? 'bigint' : 'int';
    case 'INT64':
      return kind === 'UINT_64' ? 'bigint unsigned' : 'bigint';
    case 'INT96':
      return 'timestamp(6)';
    case 'FLOAT':
      return 'float';
    case 'DOUBLE':
      return 'double';
    default:
      return 'text';
  }
}

function cell(value: unknown, type: string): Cell {
  if (value === null || value === undefined) return null;
  if (type === 'json') return JSON.stringify(value, plain);
  if (type.startsWith('decimal')) return (value as number).toFixed(scaleOf(type));
  if (type === 'text' && typeof value !== 'string') return String(value);
  return value as Cell;
}

const scaleOf = (type: string): number => Number(/(\d+)\)$/.exec(type)?.[1] ?? 0);

/** JSON has no 64-bit integers. */
const plain = (_: string, value: unknown): unknown =>
  typeof value === 'bigint'
    ? Number.isSafeInteger(Number(value))
      ? Number(value)
      : String(value)
    : value;
