/** How SQL types become JavaScript values. The defaults lose nothing but digits of numbers in `JSON` beyond 2⁵³. */

/** Choices of `connect`. */
export interface TypeOptions {
  /** `BIGINT` and `BIGINT UNSIGNED`: `bigint` (default), or `number`, rounded beyond 2⁵³. */
  bigint?: 'bigint' | 'number';
  /** `DECIMAL`: its digits as a `string` (default), or the nearest `number`. */
  decimal?: 'string' | 'number';
  /** `DATE` and `TIMESTAMP`: `Date` in UTC where exact to the millisecond, else a string (default); or always a `string`. */
  date?: 'date' | 'string';
  /** `JSON`: parsed to a `value` (default), or its text as a `string`. */
  json?: 'value' | 'string';
}

/**
 * A value going in, as it is when the call is made. Objects that are not a Date, a Uint8Array or an ArrayBuffer go in
 * as JSON; functions, a Map and the like are refused. `object` lets interfaces and classes be, which have no index.
 */
export type Parameter = null | undefined | boolean | number | bigint | string | object;

/** Values for `?` and `$1` by position, or for `:name` by name. */
export type Parameters = readonly Parameter[] | object;

/** A row by column name. */
export type Row = Record<string, unknown>;
