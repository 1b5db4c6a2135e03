/**
 * From the engine's columns to JavaScript values, one at a time and only when asked: a column is an array of
 * numbers or bytes until someone reads a row.
 */

import { Code, type WireColumn, type WireField } from '../../../worker/shared/protocol.js';
import { formatDate, formatDecimal, formatTime, formatTimestamp } from './format.js';
import type { TypeOptions } from './types.js';

/** Reads the value of a row. */
export type ColumnReader = (row: number) => unknown;

/** Without taking U+FEFF at the beginning for a mark, which is part of the text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Largest distance from 1970 a `Date` can hold, in days and microseconds. */
const DATE_RANGE_DAYS = 100_000_000;
const MICROS_PER_MS = 1000n;

/** A reader for a column. */
export function columnReader(
  field: WireField,
  column: WireColumn,
  types: TypeOptions,
): ColumnReader {
  const raw = rawReader(field.code, column);
  const convert = converter(field, types);
  if (convert === null) {
    return raw;
  }
  return (row) => {
    const value = raw(row);
    return value === null ? null : convert(value as never);
  };
}

/** Null, or the value as it travels: number, bigint, boolean, string or bytes. */
function rawReader(code: Code, { values, validity, offsets }: WireColumn): ColumnReader {
  if (Array.isArray(values)) {
    return (row) => values[row];
  }
  const read = presentReader(code, values, offsets);
  if (validity === undefined) {
    return read;
  }
  return (row) => ((validity[row >> 3]! >> (row & 7)) & 1 ? read(row) : null);
}

function presentReader(
  code: Code,
  values: ArrayLike<unknown>,
  offsets?: Uint32Array,
): ColumnReader {
  switch (code) {
    case Code.Null:
      return () => null;
    case Code.Boolean:
      return (row) => values[row] !== 0;
    case Code.UBigInt:
    case Code.Decimal128: {
      const halves = values as BigInt64Array;
      return (row) => (halves[2 * row + 1]! << 64n) | BigInt.asUintN(64, halves[2 * row]!);
    }
    case Code.Text:
    case Code.Json:
      return textReader(values as Uint8Array, offsets!);
    case Code.Binary: {
      const bytes = values as Uint8Array;
      return (row) => bytes.slice(offsets![row], offsets![row + 1]);
    }
    default:
      return (row) => values[row];
  }
}

/** Longer texts are not decoded together: the longest string there can be is of some hundred million characters. */
const TOGETHER_BYTES = 64 << 20;

/** Decoding everything once and cutting strings out of it is far quicker than decoding each; it needs ASCII. */
function textReader(bytes: Uint8Array, offsets: Uint32Array): ColumnReader {
  let all: string | null = bytes.length > TOGETHER_BYTES ? '' : null;
  return (row) => {
    all ??= decoder.decode(bytes);
    if (all.length === bytes.length) {
      return all.slice(offsets[row], offsets[row + 1]);
    }
    return decoder.decode(bytes.subarray(offsets[row], offsets[row + 1]));
  };
}

/** What is left to do with a raw value that is not null; `null` when it is nothing. */
function converter(
  { code, scale }: WireField,
  types: TypeOptions,
): ((raw: never) => unknown) | null {
  switch (code) {
    case Code.BigInt:
    case Code.UBigInt:
      return types.bigint === 'number' ? (raw: bigint) => Number(raw) : null;
    case Code.Decimal64:
    case Code.Decimal128:
      return types.decimal === 'number'
        ? (raw: bigint) => Number(formatDecimal(raw, scale))
        : (raw: bigint) => formatDecimal(raw, scale);
    case Code.Json:
      return types.json === 'string' ? null : (raw: string) => JSON.parse(raw) as unknown;
    case Code.Time:
      return formatTime;
    case Code.Date:
      return types.date === 'string'
        ? formatDate
        : (days: number) =>
            Math.abs(days) <= DATE_RANGE_DAYS ? new Date(days * 86_400_000) : formatDate(days);
    case Code.Timestamp:
      return types.date === 'string' ? formatTimestamp : exactDate;
    default:
      return null;
  }
}

function exactDate(micros: bigint): Date | string {
  if (micros % MICROS_PER_MS !== 0n) {
    return formatTimestamp(micros);
  }
  return new Date(Number(micros / MICROS_PER_MS));
}
