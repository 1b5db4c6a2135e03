/**
 * What `db.inspect()` reports: how the rows of each table are stored.
 * `bindings/wasm/src/inspect.rs` produces it.
 */

/** How one table is stored. */
export interface TableReport {
  /** The table's name. */
  name: string;
  /** Approximate number of rows. */
  rows: number;
  /** Rows in the in-memory rowstore, which the log keeps until a flush makes them a segment. */
  rowstoreRows: number;
  /** Memory that the rowstore's rows take, in bytes. */
  rowstoreBytes: number;
  /** Names of the primary key's columns; empty without a primary key. */
  primaryKey: string[];
  /** Every column, summed over all segments. */
  columns: ColumnReport[];
  /** Every segment. */
  segments: SegmentReport[];
}

/** One column, summed over all segments of its table. */
export interface ColumnReport {
  /** The column's name. */
  name: string;
  /** The SQL type: `DECIMAL(12,2)`. */
  type: string;
  /** Whether the column accepts null. */
  nullable: boolean;
  /** Stored size, in bytes. */
  bytes: number;
  /** Size without encoding, in bytes. */
  rawBytes: number;
  /** Each encoding in use and the number of segments that use it. */
  encodings: { name: string; segments: number }[];
}

/** One segment of a table. */
export interface SegmentReport {
  /** Log position at which the segment was made; larger is newer. */
  id: number;
  /** Name of the segment's file. */
  name: string;
  /** Number of its sorted run. Segments of a run do not overlap in the order of their rows. */
  run: number;
  /** Level of the run: how often its rows were merged, counting large runs as merged before. */
  level: number;
  /** Rows written, including rows deleted since. */
  rows: number;
  /** Rows deleted since the segment was written. */
  deleted: number;
  /** Stored size, in bytes. */
  bytes: number;
  /** Smallest value of the first key column, as text; empty without a primary key. */
  minKey: string;
  /** Largest value of the first key column, as text; empty without a primary key. */
  maxKey: string;
  /** Every column with its encoding and stored size in bytes. */
  columns: { name: string; encoding: string; bytes: number }[];
}
