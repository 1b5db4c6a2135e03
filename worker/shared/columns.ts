/** Converts the engine's columns to JavaScript values, one value at a time, when a row is read. */

import { formatDate, formatDecimal, formatTime, formatTimestamp } from './format.js';
import { Code, type WireColumn, type WireField, type WireTypes } from './wire.js';

/** Reads the value of a row. */
export type ColumnReader = (row: number) => unknown;
/** Converts a raw value that is not null. */
export type Converter = (raw: never) => unknown;

/** `ignoreBOM` keeps a leading U+FEFF, which is part of the text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Range of a `Date` on either side of 1970, in days. */
const DATE_RANGE_DAYS = 100_000_000;
const MICROS_PER_MS = 1000n;

/** Makes the reader of a column. */
export function columnReader(field: WireField, column: WireColumn, types: WireTypes): ColumnReader {
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

/** Reads null, or the value as it travels: number, bigint, boolean, string or bytes. */
export function rawReader(code: Code, { values, validity, offsets }: WireColumn): ColumnReader {
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

/**
 * Limit of decoding a column's text at once, in bytes: the length of JavaScript strings is limited.
 */
const MAX_DECODED_AT_ONCE = 64 << 20;

/** For ASCII, decoding the column once and slicing it is much faster than decoding each value. */
function textReader(bytes: Uint8Array, offsets: Uint32Array): ColumnReader {
  let all: string | null = bytes.length > MAX_DECODED_AT_ONCE ? '' : null;
  return (row) => {
    all ??= decoder.decode(bytes);
    if (all.length === bytes.length) {
      return all.slice(offsets[row], offsets[row + 1]);
    }
    return decoder.decode(bytes.subarray(offsets[row], offsets[row + 1]));
  };
}

/** Makes the conversion of raw values that are not null; `null` if the raw value is the result. */
export function converter({ code, scale }: WireField, types: WireTypes): Converter | null {
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
    case Code.TimestampTz:
      return types.date === 'string'
        ? formatTimestampTz
        : (raw: bigint) => exactDate(raw, formatTimestampTz);
    default:
      return null;
  }
}

/** A `Date`, or the text of a timestamp that a `Date` cannot hold. */
function exactDate(micros: bigint, format = formatTimestamp): Date | string {
  if (micros % MICROS_PER_MS !== 0n) {
    return format(micros);
  }
  return new Date(Number(micros / MICROS_PER_MS));
}

function formatTimestampTz(micros: bigint): string {
  return `${formatTimestamp(micros)}+00`;
}
