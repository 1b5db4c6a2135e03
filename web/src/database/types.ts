// Results and failures as the views use them. Reports on storage have the package's own types.

/** A column of a result, with its type as SQL spells it. */
export interface Column {
  name: string;
  type: string;
}

/** What the engine counted while it ran a statement. */
export interface Figures {
  rowsRead: number;
  bytesRead: number;
  segmentsRead: number;
  segmentsSkipped: number;
  elapsedMs: number;
}

/** The result of a statement. Each row has its values in the order of `columns`. */
export interface StatementResult {
  columns: Column[];
  rows: unknown[][];
  rowsAffected: number;
  figures: Figures;
}

/**
 * A failure, with its position in the statement's text (counted from 1) where the engine knows it.
 */
export interface Failure {
  kind: string;
  message: string;
  hint?: string;
  line?: number;
  column?: number;
}
