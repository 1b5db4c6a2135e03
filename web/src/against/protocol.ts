// Messages between the comparison page and the worker of one system.

/** A value of a result, in a form that is equal across systems. */
export type Value = number | string | null;

/** One step of the comparison. Times are measured in the worker, around the calls of the system. */
export type Job =
  | { name: 'open' }
  /** Runs statements that are not measured. */
  | { name: 'exec'; sql: string[] }
  /** Inserts the lines of a file with fields separated by `|`. */
  | { name: 'load'; table: string; text: string }
  /** Runs a query once. */
  | { name: 'query'; sql: string }
  /** Runs a prepared statement once per list of parameters, each in a transaction of its own. */
  | { name: 'each'; sql: string; parameters: (number | string)[][] }
  /** For each list of parameters, runs an update and then a query in one transaction. */
  | { name: 'mixed'; update: string; query: string; parameters: (number | string)[][] };

/** What the worker needs to know about a column to load it. */
export interface LoadColumn {
  name: string;
  integer: boolean;
}

export interface Request {
  id: number;
  job: Job;
  /** Columns of the table that `load` fills. */
  columns?: LoadColumn[];
}

/** What a job answers. */
export interface Answer {
  ms: number;
  rows: Value[][];
  /** Uncompressed bytes that the worker has fetched until now, besides its own script. */
  fetchedBytes: number;
  /** After `open`. */
  opened?: Opened;
}

export interface Opened {
  version: string;
  /** Where the data is. */
  place: string;
}

export type Reply = { id: number; answer: Answer } | { id: number; failure: string };
