/** Opening a database in a browser: the engine runs in a worker of its own, made here. */

import { nacreError } from '../../../worker/shared/errors.js';
import { Database } from './database.js';
import { engineOptions, typeOptions, type ConnectOptions } from './options.js';
import { WorkerTransport } from './worker-transport.js';

/**
 * Opens a database, making it if need be.
 *
 * In browsers `opfs://name` keeps it in this origin's private file system, in Node a path or `file:///path` keeps it in
 * that folder; `memory://` keeps it nowhere. `in_use` when another tab or process has the same database open.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Database> {
  if (url !== 'memory://' && !url.startsWith('opfs://')) {
    throw nacreError(
      'unsupported',
      `'${url}' is not a place a browser can keep a database: use opfs://name or memory://`,
    );
  }
  const types = typeOptions(options);
  const request = {
    url,
    options: engineOptions(options),
    wasmUrl: options.wasmUrl === undefined ? undefined : absolute(options.wasmUrl),
    wasmModule: options.wasmModule,
  };
  const transport = new WorkerTransport(makeWorker(options.workerUrl));
  try {
    if (url.startsWith('opfs://')) {
      // Only a page may ask; the answer may wait for the user and changes nothing here.
      globalThis.navigator?.storage?.persist?.().catch(() => {});
    }
    await transport.open(request);
  } catch (error) {
    transport.end();
    throw error;
  }
  return new Database({ transport, types });
}

function makeWorker(url: string | URL | undefined): Worker {
  if (typeof Worker === 'undefined') {
    throw nacreError('unsupported', 'there are no workers here, and the engine runs in one');
  }
  try {
    // Bundlers recognise exactly this expression and carry the worker and its WebAssembly along.
    return url === undefined
      ? new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
      : new Worker(url, { type: 'module' });
  } catch (error) {
    // The script must be of the page's own origin.
    throw nacreError('io', `the worker cannot be started: ${String(error)}`, error);
  }
}

function absolute(url: string | URL): string {
  try {
    return new URL(
      url,
      globalThis.document?.baseURI ?? globalThis.location?.href ?? import.meta.url,
    ).href;
  } catch (error) {
    throw nacreError('type', `wasmUrl is no address: ${String(url)}`, error);
  }
}
