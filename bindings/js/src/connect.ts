/** Opens databases in a browser: each one's engine runs in a worker of its own. */

import { nacreError } from '../../../worker/shared/errors.js';
import { Database } from './database.js';
import { engineOptions, typeOptions, type ConnectOptions } from './options.js';
import { workerTransport } from './worker-transport.js';

/**
 * Opens a database, creating it if it does not exist.
 *
 * In browsers, `opfs://name` keeps it in this origin's private file system; in Node, a path or
 * `file:///path` keeps it in that folder. `memory://` keeps nothing after closing. Fails with
 * `in_use` if another tab or process has the same database open.
 *
 * @example
 * ```ts
 * const db = await connect('opfs://app');
 * await db.exec('create table if not exists visit (id bigint primary key, page text)');
 * await db.close();
 * ```
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Database> {
  if (url !== 'memory://' && !url.startsWith('opfs://')) {
    throw nacreError(
      'unsupported',
      `'${url}' is not a place where a browser can keep a database: use opfs://name or memory://`,
    );
  }
  const types = typeOptions(options);
  const request = {
    url,
    options: engineOptions(options),
    wasmUrl: absolute('wasmUrl', options.wasmUrl),
    wasmModule: options.wasmModule,
    moreWasmUrl: absolute('moreWasmUrl', options.moreWasmUrl),
    moreWasmModule: options.moreWasmModule,
  };
  const transport = workerTransport(makeWorker(options.workerUrl));
  try {
    if (url.startsWith('opfs://')) {
      // Only a page can ask for persistence. The answer may wait for the user, and opening does not
      // depend on it.
      globalThis.navigator?.storage?.persist?.().catch(() => {});
    }
    await transport.call('open', request);
  } catch (error) {
    transport.end();
    throw error;
  }
  return new Database({ transport, types });
}

function makeWorker(url: string | URL | undefined): Worker {
  if (typeof Worker === 'undefined') {
    throw nacreError('unsupported', 'this environment has no workers, and the engine runs in one');
  }
  try {
    // Bundlers recognise exactly this expression, and bundle the worker and its WebAssembly file.
    return url === undefined
      ? new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
      : new Worker(url, { type: 'module' });
  } catch (error) {
    // The worker's script must come from the page's own origin.
    throw nacreError('io', `the worker cannot be started: ${String(error)}`, error);
  }
}

function absolute(option: string, url: string | URL | undefined): string | undefined {
  if (url === undefined) {
    return undefined;
  }
  try {
    return new URL(
      url,
      globalThis.document?.baseURI ?? globalThis.location?.href ?? import.meta.url,
    ).href;
  } catch (error) {
    throw nacreError('type', `${option} is not a valid URL: ${String(url)}`, error);
  }
}
