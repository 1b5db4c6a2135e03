// What a statement answered, in the shapes the views work with. What tables are made of comes as the package reports it.

/** A column of a result, with its type as SQL spells it. */
export interface Column {
  name: string;
  type: string;
}

/** What the engine counted while it ran one statement. */
export interface Figures {
  rowsRead: number;
  bytesRead: number;
  segmentsRead: number;
  segmentsSkipped: number;
  elapsedMs: number;
}

/** The answer to one statement. `rows` hold their values in the order of `columns`. */
export interface Answer {
  columns: Column[];
  rows: unknown[][];
  rowsAffected: number;
  figures: Figures;
}

/** A failed statement, with the place in its own text (from 1) where the engine knows it. */
export interface Failure {
  kind: string;
  message: string;
  hint?: string;
  line?: number;
  column?: number;
}
