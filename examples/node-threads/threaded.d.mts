/** Types of `threaded.mjs`, for its test. */
export class ThreadedDatabase {
  constructor(folder: string);
  exec(sql: string): Promise<void>;
  query(sql: string, parameters?: unknown[]): Promise<object[]>;
  insertRows(table: string, rows: object, options?: object): Promise<number>;
  close(): Promise<void>;
}
