/** The package in Node: the engine runs in the caller's thread, on a folder or in memory. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FolderStore } from '../../../worker/node/folder-store.js';
import { Connection } from '../../../worker/shared/connection.js';
import { loadSync } from '../../../worker/shared/engine.js';
import { NacreError, nacreError, toErrorData } from '../../../worker/shared/errors.js';
import type { OwnedStore } from '../../../worker/shared/local-store.js';
import { Database } from './database.js';
import { LocalTransport } from './local-transport.js';
import { engineOptions, typeOptions, type ConnectOptions } from './options.js';

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
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Database> {
  const [checked, types] = [engineOptions(options), typeOptions(options)];
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
  const connection = await Connection.open(store, checked);
  return new Database({ transport: new LocalTransport(connection), types });
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
  if (url === 'memory://') {
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
