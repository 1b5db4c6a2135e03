/**
 * The result of a statement. It keeps the columns as they arrived, and makes rows when they are
 * first read.
 */

import type { Statistics, WireColumn, WireField, WireResult } from '../../../worker/shared/wire.js';
import { rawReader, type ColumnReader } from '../../../worker/shared/columns.js';
import { Shape, type ResultColumn } from './shape.js';
import type { Row, TypeOptions } from './types.js';

const NO_FIELDS: readonly WireField[] = [];

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
  readonly #shape: Shape;
  readonly #wire: WireColumn[];
  #readers: ColumnReader[] | null = null;
  #rows: R[] | null = null;

  /** @internal */
  constructor(wire: WireResult, types: TypeOptions, known: readonly WireField[] = NO_FIELDS) {
    this.#shape = Shape.of(wire.fields ?? known, types);
    this.columns = this.#shape.columns;
    this.rowCount = wire.rows;
    this.rowsAffected = wire.rowsAffected;
    this.statistics = wire.statistics;
    this.kind = wire.kind;
    this.#wire = wire.columns;
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
    const readers = this.#all();
    return this.#shape.row<R>((column) => readers[column]!(index));
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
    return this.#all().map((read, column) => this.#shape.value(column, read(index)));
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

  /** What reads the raw values of each column. */
  #all(): ColumnReader[] {
    return (this.#readers ??= this.#shape.fields.map(({ code }, column) =>
      rawReader(code, this.#wire[column]!),
    ));
  }
}
