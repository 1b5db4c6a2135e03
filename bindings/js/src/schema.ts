/** Types of rows from a schema: `connect<Schema>()`. They exist for the compiler only. */

import type { Row } from './types.js';

/** A schema that says nothing: any table, any columns. */
export type AnySchema = Record<string, any>;

/** The name of a table of a schema. */
export type TableName<S extends object> = keyof S & string;

/** A row to insert into a table of a schema: its columns, of which some may have defaults. */
export type NewRow<S extends object, T extends TableName<S>> = string extends keyof S
  ? object
  : Partial<Record<keyof S[T], unknown>>;

/** What may follow the table in a text whose rows are the table's. */
type Clause = `where ${string}` | `order by ${string}` | `limit ${string}`;

/** The table of `select * from …`; `never` if more follows than a filter, an order or a limit. */
type TableIn<Rest extends string> = Rest extends `${infer Table} ${infer Tail}`
  ? Tail extends Clause
    ? Table
    : never
  : Rest;

/**
 * The rows of a text by a schema: those of the table for `select * from table`, with a filter, an
 * order or a limit or none; else rows of unknown columns. Types cannot read SQL beyond that: give
 * the row's type, as in `db.query<{ n: bigint }>('select count(*) as n from visit')`.
 */
export type RowOf<S extends object, Text extends string> = string extends keyof S
  ? Row
  : Lowercase<Text> extends `select * from ${infer Rest}`
    ? TableIn<Rest> extends infer Table extends TableName<S>
      ? [Table] extends [never]
        ? Row
        : S[Table]
      : Row
    : Row;

/** The row's type that a call names, or else the one of its text. */
export type Chosen<R, S extends object, Text extends string> = [R] extends [never]
  ? RowOf<S, Text>
  : R;

/** The rows of a table by a schema. */
export type RowIn<S extends object, T extends TableName<S>> = string extends keyof S ? Row : S[T];
