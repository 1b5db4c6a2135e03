/**
 * The result of a statement. It keeps the columns as they arrived, and makes rows when they are
 * first read.
 */

import type { Statistics, WireColumn, WireField, WireResult } from '../../../worker/shared/wire.js';
import { columnReader, type ColumnReader } from '../../../worker/shared/columns.js';
import type { Row, TypeOptions } from './types.js';

/** Name and type of a result column. */
export interface ResultColumn {
  /** The column's name or alias. */
  name: string;
  /** The SQL type: `DECIMAL(12,2)`. */
  type: string;
}

/** The result of a statement. */
export class QueryResult<R = Row> {
  /** The result's columns, in order. Empty for a statement that answers no rows. */
  readonly columns: readonly ResultColumn[];
  /** Number of rows in the result. */
  readonly rowCount: number;
  /** Number of rows inserted, updated or deleted. */
  readonly rowsAffected: number;
  /** What the engine read, and how long it took. */
  readonly statistics: Readonly<Statistics>;
  /** Kind of statement: `query`, `write`, `ddl`, … */
  readonly kind: string;
  readonly #fields: readonly WireField[];
  readonly #wire: WireColumn[];
  readonly #types: TypeOptions;
  #readers: ColumnReader[] | null = null;
  #rows: R[] | null = null;

  /** @internal */
  constructor(wire: WireResult, types: TypeOptions, known: readonly WireField[] = []) {
    this.#fields = wire.fields ?? known;
    this.columns = describe(this.#fields);
    this.rowCount = wire.rows;
    this.rowsAffected = wire.rowsAffected;
    this.statistics = wire.statistics;
    this.kind = wire.kind;
    this.#wire = wire.columns;
    this.#types = types;
  }

  /**
   * Every row as an object by column name. If several columns have one name, the object has the
   * last one's value. The rows are made on first use and kept.
   *
   * @example
   * ```ts
   * const text = 'select page, count(*) as n from visit group by page order by n';
   * const result = await db.query(text);
   * console.log(result.rows); // [ { page: 'docs', n: 1n }, { page: 'home', n: 2n } ]
   * ```
   */
  get rows(): R[] {
    return (this.#rows ??= Array.from({ length: this.rowCount }, (_, row) => this.row(row)));
  }

  /**
   * One row as an object by column name. Rows count from 0.
   *
   * @example
   * ```ts
   * const result = await db.query('select id, page from visit order by id');
   * console.log(result.row(1)); // { id: 2n, page: 'docs' }
   * ```
   */
  row(index: number): R {
    const row: Row = {};
    const readers = this.#all();
    for (let i = 0; i < readers.length; i++) {
      const name = this.#fields[i]!.name;
      const value = readers[i]!(index);
      // Assigning to `__proto__` would set the prototype.
      if (name === '__proto__') {
        Object.defineProperty(row, name, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      } else {
        row[name] = value;
      }
    }
    return row as R;
  }

  /**
   * One row's values in the order of the columns, also where several columns have one name. Rows
   * count from 0.
   *
   * @example
   * ```ts
   * const text = 'select a.id, b.id from visit a join visit b on b.id = a.id + 1 order by a.id';
   * const result = await db.query(text);
   * console.log(result.values(0)); // [ 1n, 2n ]
   * ```
   */
  values(index: number): unknown[] {
    return this.#all().map((read) => read(index));
  }

  /**
   * Yields the rows as objects by column name, and keeps none of them.
   *
   * @example
   * ```ts
   * for (const row of await db.query('select max(ms) as slowest from visit')) {
   *   console.log(row); // { slowest: 120 }
   * }
   * ```
   */
  *[Symbol.iterator](): IterableIterator<R> {
    for (let i = 0; i < this.rowCount; i++) {
      yield this.row(i);
    }
  }

  #all(): ColumnReader[] {
    return (this.#readers ??= this.#fields.map((field, i) =>
      columnReader(field, this.#wire[i]!, this.#types),
    ));
  }
}

/** The public part of fields. */
export function describe(fields: readonly WireField[]): ResultColumn[] {
  return fields.map(({ name, type }) => ({ name, type }));
}
