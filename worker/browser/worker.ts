/**
 * The dedicated worker of a page: it runs the engine on the database's files and answers the page's
 * calls.
 */

import { Connection } from '../shared/connection.js';
import { loadFromModule, loadFromUrl } from '../shared/engine.js';
import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { Opening } from '../shared/opening.js';
import { serve, type ServerPort } from '../shared/server.js';
import type { OpenRequest } from '../shared/wire.js';
import { OpfsStore } from './opfs-store.js';

async function open({ url, options, wasmUrl, wasmModule }: OpenRequest): Promise<Connection> {
  const loaded = wasmModule
    ? loadFromModule(wasmModule)
    : loadFromUrl(wasmUrl ?? new URL('./nacre_bg.wasm', import.meta.url).href);
  // Opening the store and loading the engine each take a while, and are independent.
  const [store] = await Promise.all([openStore(url), loaded]);
  return Connection.open(store, options);
}

async function openStore(url: string): Promise<OwnedStore | null> {
  if (url === 'memory://') {
    return null;
  }
  if (url.startsWith('opfs://')) {
    return OpfsStore.open(url.slice('opfs://'.length));
  }
  throw nacreError(
    'unsupported',
    `'${url}' is not a place where a browser can keep a database: use opfs://name or memory://`,
  );
}

// TypeScript knows either pages or workers in one project, so the worker's global scope needs a
// cast.
serve(globalThis as unknown as ServerPort, new Opening(open));
