/** Opens a database in a worker: its files, and the engine. */

import { filesOf } from '../shared/archive.js';
import { Connection } from '../shared/connection.js';
import { loadFromModule, loadFromUrl } from '../shared/engine.js';
import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import type { OpenRequest } from '../shared/wire.js';
import { OpfsStore } from './opfs-store.js';

/** Opens the database that a request names. */
export async function open(request: OpenRequest): Promise<Connection> {
  const { url, options, wasmUrl, wasmModule, patienceMs } = request;
  const rest = () => request.moreWasmModule ?? fetchNow(moreUrl(request));
  const loaded = wasmModule
    ? loadFromModule(wasmModule, rest)
    : loadFromUrl(wasmUrl ?? new URL('./nacre_bg.wasm', import.meta.url).href, rest);
  const files = request.import === undefined ? [] : await filesOf(request.import);
  // Opening the store and loading the engine each take a while, and are independent.
  const [store] = await Promise.all([openStore(url, patienceMs), loaded]);
  return Connection.open(store, options, files);
}

function moreUrl({ moreWasmUrl, wasmUrl }: OpenRequest): string {
  if (moreWasmUrl !== undefined) {
    return moreWasmUrl;
  }
  return wasmUrl === undefined
    ? new URL('./nacre_more.wasm', import.meta.url).href
    : new URL('nacre_more.wasm', wasmUrl).href;
}

/** Fetches a file while the engine waits. */
function fetchNow(url: string): ArrayBuffer {
  const request = new XMLHttpRequest();
  request.open('GET', url, false);
  request.responseType = 'arraybuffer';
  try {
    request.send();
  } catch (error) {
    throw nacreError('io', `cannot fetch ${url}: ${String(error)}`, error);
  }
  if (request.status !== 200) {
    throw nacreError('io', `cannot fetch ${url}: HTTP status ${request.status}`);
  }
  return request.response as ArrayBuffer;
}

async function openStore(url: string, patienceMs?: number): Promise<OwnedStore | null> {
  if (url === 'memory://') {
    return null;
  }
  if (url.startsWith('opfs://')) {
    return OpfsStore.open(url.slice('opfs://'.length), patienceMs);
  }
  throw nacreError(
    'unsupported',
    `'${url}' is not a place where a browser can keep a database: use opfs://name or memory://`,
  );
}
