/**
 * JavaScript types of SQL values. The defaults are lossless, except for numbers beyond 2⁵³ inside
 * `JSON`.
 */

/**
 * The option `types` of `connect`: JavaScript types of SQL values.
 *
 * @example
 * ```ts
 * const types = { bigint: 'number', decimal: 'number', date: 'string' } as const;
 * const db = await connect('memory://', { types });
 * const { rows } = await db.query("select count(*) as n, 1.50 as price, date '2026-11-23' as day");
 * console.log(rows); // [ { n: 1, price: 1.5, day: '2026-11-23' } ]
 * await db.close();
 * ```
 */
export interface TypeOptions {
  /** `BIGINT` and `BIGINT UNSIGNED`: `bigint` (default), or `number`, rounded beyond 2⁵³. */
  bigint?: 'bigint' | 'number';
  /** `DECIMAL`: its digits as a `string` (default), or the nearest `number`. */
  decimal?: 'string' | 'number';
  /**
   * `DATE` and `TIMESTAMP`: a `Date` in UTC, or a string if the value has microseconds (default);
   * or always a `string`.
   */
  date?: 'date' | 'string';
  /** `JSON`: the parsed `value` (default), or its text as a `string`. */
  json?: 'value' | 'string';
}

/**
 * The value of a parameter. The call copies it, so it can change afterwards. A `Date` becomes a
 * timestamp, a `Uint8Array` or `ArrayBuffer` binary data, and every other object JSON; functions,
 * maps, sets and the like are an error of kind `type`.
 *
 * @example
 * ```ts
 * const bytes = new Uint8Array([1]);
 * const values = [null, true, 1, 2n, 1.5, 'text', new Date(0), bytes, { json: [1, 2] }];
 * const { columns } = await db.query('select ?, ?, ?, ?, ?, ?, ?, ?, ?', values);
 * console.log(columns.length); // 9
 * ```
 */
export type Parameter = null | undefined | boolean | number | bigint | string | object;

/**
 * Parameters of a statement: an array for `?` and `$1`, an object for `:name`.
 *
 * @example
 * ```ts
 * await db.query('insert into visit values (?, ?, ?)', [4, 'home', 90]);
 * await db.query('insert into visit values (:id, :page, :ms)', { id: 5, page: 'docs', ms: 70 });
 * ```
 */
export type Parameters = readonly Parameter[] | object;

/** A row as an object by column name. */
export type Row = Record<string, unknown>;
