/** What `db.inspect()` tells about where the rows of each table are. */

/** One table. */
export interface TableReport {
  name: string;
  /** Rows, about. */
  rows: number;
  /** Rows that are still in memory and in the log. */
  rowstoreRows: number;
  rowstoreBytes: number;
  /** Names of the key's columns; empty when there is no primary key. */
  primaryKey: string[];
  columns: ColumnReport[];
  segments: SegmentReport[];
}

/** One column over all segments. */
export interface ColumnReport {
  name: string;
  type: string;
  nullable: boolean;
  /** Bytes as stored, and as they would be without encoding. */
  bytes: number;
  rawBytes: number;
  /** How many segments use which encoding. */
  encodings: { name: string; segments: number }[];
}

/** One segment. */
export interface SegmentReport {
  id: number;
  name: string;
  rows: number;
  deleted: number;
  bytes: number;
  minKey: string;
  maxKey: string;
  columns: { name: string; encoding: string; bytes: number }[];
}
