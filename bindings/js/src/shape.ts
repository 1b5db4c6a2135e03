/** What all results of one statement have in common: the columns, and how their values are converted. */

import { converter, type Converter } from '../../../worker/shared/columns.js';
import type { WireField } from '../../../worker/shared/wire.js';
import type { Row, TypeOptions } from './types.js';

/** Name and type of a result column. */
export interface ResultColumn {
  /** The column's name or alias. */
  name: string;
  /** The SQL type: `DECIMAL(12,2)`. */
  type: string;
}

/** The newest shape of each list of fields. Results in the engine's own thread share the lists. */
const shapes = new WeakMap<readonly WireField[], Shape>();

/** The shape of a result. */
export class Shape {
  /** The public part of the fields. */
  readonly columns: readonly ResultColumn[];
  readonly fields: readonly WireField[];
  readonly types: TypeOptions;
  readonly #converters: (Converter | null)[];

  private constructor(fields: readonly WireField[], types: TypeOptions) {
    this.columns = fields.map(({ name, type }) => ({ name, type }));
    this.fields = fields;
    this.types = types;
    this.#converters = fields.map((field) => converter(field, types));
  }

  /** The shape of results with these fields. */
  static of(fields: readonly WireField[], types: TypeOptions): Shape {
    const known = shapes.get(fields);
    if (known?.types === types) {
      return known;
    }
    const shape = new Shape(fields, types);
    shapes.set(fields, shape);
    return shape;
  }

  /** The value of a column, from its raw form. */
  value(column: number, raw: unknown): unknown {
    const convert = this.#converters[column]!;
    return convert === null || raw === null ? raw : convert(raw as never);
  }

  /** A row as an object by column name, given how to read the raw value of a column. */
  row<R = Row>(read: (column: number) => unknown): R {
    const row: Row = {};
    for (let column = 0; column < this.fields.length; column++) {
      const { name } = this.fields[column]!;
      const value = this.value(column, read(column));
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
}
