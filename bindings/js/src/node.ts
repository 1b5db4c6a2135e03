/** The package in Node: the engine runs in the caller's thread, on a folder or in memory. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesOf } from '../../../worker/shared/archive.js';
import { FolderStore } from '../../../worker/node/folder-store.js';
import { loadBlobs } from '../../../worker/shared/blobs/load.js';
import { isBlobsUrl } from '../../../worker/shared/blobs/url.js';
import { Connection } from '../../../worker/shared/connection.js';
import { loadSync } from '../../../worker/shared/engine.js';
import { NacreError, nacreError, toErrorData } from '../../../worker/shared/errors.js';
import type { OwnedStore } from '../../../worker/shared/local-store.js';
import type { Database } from './database.js';
import {
  blobsOption,
  engineOptions,
  importOption,
  typeOptions,
  type ConnectOptions,
} from './options.js';
import type { AnySchema } from './schema.js';
import { ThreadDatabase } from './thread-database.js';

export * from './public.js';

/**
 * Opens a database, creating it if it does not exist.
 *
 * In Node, a path or `file:///path` keeps it in that folder; in browsers, `opfs://name` keeps it in
 * this origin's private file system. `memory://` keeps nothing after closing. Fails with `in_use`
 * if another process or tab has the same database open.
 *
 * @example
 * ```ts
 * const db = await connect('./shop');
 * await db.exec('create table if not exists item (id bigint primary key, name text)');
 * await db.close();
 * ```
 *
 * A type with the rows of each table makes the compiler know tables and rows:
 *
 * @example
 * ```ts
 * interface Schema {
 *   visit: { id: bigint; page: string };
 * }
 * const db = await connect<Schema>('memory://');
 * await db.exec('create table visit (id bigint primary key, page text)');
 * await db.insertRows('visit', [{ id: 1, page: 'home' }]);
 * const { rows } = await db.query('select * from visit where id = ?', [1]);
 * console.log(rows[0]?.page.toUpperCase()); // HOME
 * await db.close();
 * ```
 */
export async function connect<S extends object = AnySchema>(
  url: string,
  options: ConnectOptions = {},
): Promise<Database<S>> {
  return connectInThread<S>(url, options);
}

/**
 * Opens a database whose engine runs in the calling thread, so that prepared statements also run
 * synchronously. In Node, `connect` runs it there as well; in a browser, this is for dedicated
 * workers.
 *
 * @example
 * ```ts
 * const db = await connectInThread('memory://');
 * await db.exec("create table t (id int primary key, name text); insert into t values (1, 'a')");
 * const byId = await db.prepare<{ name: string }>('select name from t where id = ?');
 * console.log(byId.getSync([1])); // { name: 'a' }
 * await db.close();
 * ```
 */
export async function connectInThread<S extends object = AnySchema>(
  url: string,
  options: ConnectOptions = {},
): Promise<ThreadDatabase<S>> {
  const [checked, types] = [engineOptions(options, isBlobsUrl(url)), typeOptions(options)];
  const imported = importOption(options);
  const { wire, ask } = blobsOption(url, options);
  const blobs = await loadBlobs(wire, ask, () => import('./blobs.js'));
  const files = imported === undefined ? [] : await filesOf(imported);
  const store = await openStore(url);
  try {
    // Only once the folder is ours, and without a pause before the connection: another one may
    // start or end the engine.
    loadSync(
      () => options.wasmModule ?? readEngine(options.wasmUrl ?? FIRST),
      () => options.moreWasmModule ?? readEngine(moreUrl(options)),
    );
  } catch (error) {
    store?.close();
    throw error;
  }
  return new ThreadDatabase<S>(await Connection.open(store, checked, files, blobs), types);
}

/** The engine's two files. */
const FIRST = new URL('./nacre_bg.wasm', import.meta.url);
const MORE = new URL('./nacre_more.wasm', import.meta.url);

function moreUrl({ wasmUrl, moreWasmUrl }: ConnectOptions): string | URL {
  if (moreWasmUrl !== undefined || wasmUrl === undefined) {
    return moreWasmUrl ?? MORE;
  }
  return isFileUrl(wasmUrl)
    ? new URL('nacre_more.wasm', wasmUrl)
    : path.join(path.dirname(String(wasmUrl)), 'nacre_more.wasm');
}

function readEngine(url: string | URL): Uint8Array<ArrayBuffer> {
  try {
    return fs.readFileSync(isFileUrl(url) ? fileURLToPath(url) : url);
  } catch (error) {
    throw nacreError('io', `cannot read the engine's WebAssembly file: ${String(error)}`, error);
  }
}

function isFileUrl(url: string | URL): boolean {
  return String(url).startsWith('file:');
}

async function openStore(url: string): Promise<OwnedStore | null> {
  if (url === 'memory://' || isBlobsUrl(url)) {
    return null;
  }
  if (url === '') {
    throw nacreError('not_found', 'the path of the database is empty');
  }
  if (url === ':memory:') {
    throw nacreError(
      'unsupported',
      "use 'memory://' for a database in memory, or './:memory:' for a folder of that name",
    );
  }
  if (!isFileUrl(url) && /^[a-z][a-z0-9+.-]+:\/\//i.test(url)) {
    throw nacreError(
      'unsupported',
      `'${url}' is not a place where Node can keep a database: use a folder or memory://`,
    );
  }
  try {
    return await FolderStore.open(isFileUrl(url) ? fileURLToPath(url) : url);
  } catch (error) {
    throw error instanceof NacreError
      ? error
      : new NacreError(toErrorData(error, url), { cause: error });
  }
}
