// The demo's one connection, and the only file that imports the package.
//
// Decides where the database is, opens it, and converts results to the shapes of `types.ts`.
// Prefers the browser's own file system; without one (an old browser, a private window) it opens
// the database in memory and says why.

import { connect, NacreError, type ConnectOptions, type Database, type TableReport } from 'nacredb';

import type { StatementResult, Failure } from './types';

export const STORED_URL = 'opfs://demo';
const MEMORY_URL = 'memory://';

/** Most visitors group and sort: the whole engine is there before they do. */
const OPTIONS: ConnectOptions = { preload: true };

let database: Database | undefined;

/** Where the database is. `reason` says why it is in memory only. */
export interface Opened {
  url: string;
  reason?: string;
}

/** Opens the database, here or through the tab that has it open. */
export async function open(): Promise<Opened> {
  const reason = await whyNotStored();
  const url = reason ? MEMORY_URL : STORED_URL;
  try {
    database = await connect(url, OPTIONS);
    return { url, reason };
  } catch (error) {
    if (url === MEMORY_URL || !(error instanceof NacreError) || error.kind !== 'unsupported')
      throw error;
    database = await connect(MEMORY_URL, OPTIONS);
    return { url: MEMORY_URL, reason: error.message };
  }
}

async function whyNotStored(): Promise<string | undefined> {
  if (!window.isSecureContext) return 'this page was not loaded over HTTPS or from localhost';
  if (!navigator.storage?.getDirectory) return 'this browser has no origin private file system';
  try {
    await navigator.storage.getDirectory();
    return undefined;
  } catch {
    return 'this window is not allowed to store files, as is usual for private windows';
  }
}

/** The open database. To be called only after `open` has answered. */
export function connection(): Database {
  if (!database) throw new Error('the database is not open');
  return database;
}

/** Runs one statement, which ends with `cancelled` when the signal aborts. */
export async function query(sql: string, signal?: AbortSignal): Promise<StatementResult> {
  const result = await connection().query(sql, undefined, signal && { signal });
  return {
    columns: [...result.columns],
    // By position: two columns of a join can have the same name.
    rows: Array.from({ length: result.rowCount }, (_, row) => result.values(row)),
    rowsAffected: result.rowsAffected,
    figures: result.statistics,
  };
}

/** How every table is stored. */
export const inspect = (): Promise<TableReport[]> => connection().inspect();

/** Size of the database's files, and whether the browser promises to keep them. */
export async function storage(): Promise<{ bytes: number; persisted: boolean }> {
  return connection().storage();
}

/** Converts anything thrown to what the console shows. */
export function asFailure(error: unknown): Failure {
  if (error instanceof NacreError) {
    const { kind, message, hint, position } = error;
    return { kind, message, hint, line: position?.line, column: position?.column };
  }
  return { kind: 'page', message: error instanceof Error ? error.message : String(error) };
}
