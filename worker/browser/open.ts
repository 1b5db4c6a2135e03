/** Opens a database in a worker: its files, and the engine. */

import { filesOf } from '../shared/archive.js';
import type { EngineBlobs } from '../shared/blobs/engine-blobs.js';
import { loadBlobs, type BlobsScript } from '../shared/blobs/load.js';
import type { Ask } from '../shared/blobs/options.js';
import { Connection } from '../shared/connection.js';
import { loadFromModule, loadFromUrl } from '../shared/engine.js';
import { fetchModule, notFetched } from '../shared/engine-file.js';
import { NacreError, nacreError, toErrorData } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { mustBeThisVersion } from '../shared/version.js';
import type { OpenRequest } from '../shared/wire.js';
import { isBlobsUrl } from '../shared/blobs/url.js';
import type { IdbStore } from './idb-store.js';
import { OpfsStore } from './opfs-store.js';

/** The script of databases in IndexedDB, `indexeddb.js`. */
interface IndexedDbScript {
  IdbStore: typeof IdbStore;
}

/** Opens the database that a request names. `ask` answers the questions of its blob store. */
export async function open(request: OpenRequest, ask: Ask): Promise<Connection> {
  mustBeThisVersion(request.version);
  const { options, wasmUrl, wasmModule } = request;
  let preloaded = request.moreWasmModule;
  const rest = () => preloaded ?? fetchNow(moreUrl(request));
  const loaded = wasmModule
    ? loadFromModule(wasmModule, rest)
    : loadFromUrl(wasmUrl ?? new URL('./nacre_bg.wasm', import.meta.url).href, rest);
  // Its failure is reported below, even if the file to import takes longer.
  loaded.catch(() => {});
  if (request.preload === true && preloaded === undefined) {
    // Should it fail, the statement that needs the file fetches it again, and reports why.
    loaded
      .then(() => fetchModule(moreUrl(request)))
      .then((module) => (preloaded = module))
      .catch(() => {});
  }
  const files = request.import === undefined ? [] : await filesOf(request.import);
  // Opening the store and loading the engine each take a while, and are independent.
  const opening = openStore(request);
  let blobs: EngineBlobs | undefined;
  try {
    [blobs] = await Promise.all([openBlobs(request, ask), opening, loaded, hold(request.lifeLock)]);
  } catch (error) {
    // In a caller's own worker, which goes on, the files would stay locked.
    (await opening.catch(() => null))?.close();
    throw error;
  }
  return Connection.open(await opening, options, files, blobs);
}

/** The blob store of a request, whose script is loaded only then. */
function openBlobs({ blobs, blobsUrl }: OpenRequest, ask: Ask): Promise<EngineBlobs | undefined> {
  return loadBlobs(blobs, ask, () =>
    script<BlobsScript>(
      blobsUrl ?? new URL('./blobs.js', import.meta.url).href,
      'blobs.js of the package there, or set blobsUrl',
    ),
  );
}

/** The store of databases in IndexedDB, whose script is loaded only for one. */
async function indexedDb(): Promise<typeof IdbStore> {
  const url = new URL('./indexeddb.js', import.meta.url).href;
  return (await script<IndexedDbScript>(url, 'indexeddb.js of the package there')).IdbStore;
}

/** Fails with errors of this script's class: the other one has its own. */
async function ofThisScript<T>(opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    throw new NacreError(toErrorData(error, 'IndexedDB'), { cause: error });
  }
}

/**
 * Loads a script that few databases need. Bundlers copy it as they copy the engine's files: a name that they
 * see in `import` would divide the worker, which not all of them can.
 */
async function script<T>(url: string, remedy: string): Promise<T> {
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ url)) as T;
  } catch (error) {
    throw nacreError(
      'io',
      `a script could not be loaded from ${url}: ${String(error)}; serve the file ${remedy}`,
      error,
    );
  }
}

/** Takes a Web Lock for as long as this worker lives. */
function hold(name: string | undefined): Promise<void> {
  return new Promise((held) => {
    if (name === undefined) {
      held();
      return;
    }
    const forever = (): Promise<void> => {
      held();
      return new Promise(() => {});
    };
    // Without an origin there are no locks: the database works all the same.
    navigator.locks.request(name, forever).catch(() => held());
  });
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
    throw notFetched(url, String(error), error);
  }
  if (request.status !== 200) {
    throw notFetched(url, `HTTP status ${request.status}`);
  }
  return request.response as ArrayBuffer;
}

async function openStore(request: OpenRequest): Promise<OwnedStore | null> {
  const { url } = request;
  if (url === 'memory://' || isBlobsUrl(url)) {
    return null;
  }
  if (url.startsWith('opfs://')) {
    return openFiles(url.slice('opfs://'.length), request);
  }
  throw nacreError(
    'unsupported',
    `'${url}' is not a place where a browser can keep a database: use opfs://name or memory://`,
  );
}

/** Opens the files of a database where the browser can keep them. */
async function openFiles(
  name: string,
  { patienceMs, fallback = 'none', blobs }: OpenRequest,
): Promise<OwnedStore | null> {
  if (fallback === 'indexeddb' && blobs !== undefined) {
    // What is written there is durable only later, and must not be uploaded before.
    throw nacreError('unsupported', "blobs are not supported with the fallback 'indexeddb'");
  }
  // A database that was begun in IndexedDB stays there, also when the browser has files now.
  const store = fallback === 'indexeddb' ? await indexedDb() : null;
  if (await store?.has(name)) {
    return ofThisScript(store!.open(name, patienceMs));
  }
  try {
    return await OpfsStore.open(name, patienceMs);
  } catch (error) {
    if (fallback === 'none' || !(error instanceof NacreError && error.kind === 'unsupported')) {
      throw error;
    }
    return store === null ? null : ofThisScript(store.open(name, patienceMs));
  }
}
