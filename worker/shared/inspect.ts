/** What `db.inspect()` reports: how the rows of each table are stored. `bindings/wasm/src/inspect.rs` produces it. */

/** How one table is stored. */
export interface TableReport {
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
  name: string;
  /** The SQL type: `DECIMAL(12,2)`. */
  type: string;
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
  id: number;
  /** Name of its file. */
  name: string;
  /** Rows written, including rows deleted since. */
  rows: number;
  /** Rows deleted since the segment was written. */
  deleted: number;
  /** Stored size, in bytes. */
  bytes: number;
  /** Smallest key, as text. */
  minKey: string;
  /** Largest key, as text. */
  maxKey: string;
  /** Every column with its encoding and stored size in bytes. */
  columns: { name: string; encoding: string; bytes: number }[];
}
