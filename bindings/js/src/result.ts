/** The result of a statement: columns as they came, rows made when first looked at. */

import type {
  Statistics,
  WireColumn,
  WireField,
  WireResult,
} from '../../../worker/shared/protocol.js';
import { columnReader, type ColumnReader } from './columns.js';
import type { Row, TypeOptions } from './types.js';

/** A result column. */
export interface ResultColumn {
  name: string;
  /** The SQL type: `DECIMAL(12,2)`. */
  type: string;
}

/** What a statement answered. */
export class QueryResult<R = Row> {
  /** Result columns, in order. Empty for statements that answer no rows. */
  readonly columns: readonly ResultColumn[];
  /** Number of rows in the result. */
  readonly rowCount: number;
  /** Rows inserted, changed or deleted. */
  readonly rowsAffected: number;
  /** What the engine read to answer. */
  readonly statistics: Readonly<Statistics>;
  /** `query`, `write`, `ddl`, … */
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

  /** Every row, by column name; of several columns of one name the last counts. Made once, on first use. */
  get rows(): R[] {
    return (this.#rows ??= Array.from({ length: this.rowCount }, (_, row) => this.row(row)));
  }

  /** One row, by column name. */
  row(index: number): R {
    const row: Row = {};
    const readers = this.#all();
    for (let i = 0; i < readers.length; i++) {
      const name = this.#fields[i]!.name;
      const value = readers[i]!(index);
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

  /** One row's values in the order of the columns. */
  values(index: number): unknown[] {
    return this.#all().map((read) => read(index));
  }

  /** Rows one by one, none of them kept. */
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

/** What users see of fields. */
export function describe(fields: readonly WireField[]): ResultColumn[] {
  return fields.map(({ name, type }) => ({ name, type }));
}
