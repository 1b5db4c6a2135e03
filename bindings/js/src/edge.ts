/**
 * The package at the edge, in Cloudflare Workers and their Durable Objects: the engine runs in the caller's
 * thread. Code may not be compiled there, so both parts of the engine are imported with the script.
 */

import first from './nacre_bg.wasm';
import more from './nacre_more.wasm';
import { filesOf } from '../../../worker/shared/archive.js';
import {
  DurableStore,
  forgetCutOff,
  wasCutOff,
  type DurableState,
} from '../../../worker/edge/durable-store.js';
import { loadBlobs } from '../../../worker/shared/blobs/load.js';
import { nacreError } from '../../../worker/shared/errors.js';
import { Connection } from '../../../worker/shared/connection.js';
import { abandon, loadSync } from '../../../worker/shared/engine.js';
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
export type { DurableState } from '../../../worker/edge/durable-store.js';

/** An isolate has 128 MB, of which the engine's code and the application take their share. */
const MEMORY_BYTES = 64 * 2 ** 20;

/** Options of `connect` at the edge. */
export interface EdgeOptions extends Omit<
  ConnectOptions,
  'fallback' | 'wasmUrl' | 'moreWasmUrl' | 'preload' | 'workerUrl' | 'blobsUrl'
> {
  /**
   * The state of the Durable Object that keeps the database, its first constructor argument. Without
   * one the database is in memory, until it is closed.
   */
  state?: DurableState;
  /**
   * Whether to open the database of `blobs` only to read it, beside its writer.
   * @default false
   */
  readOnly?: boolean;
  /**
   * Memory of the whole database, in bytes.
   * @default 67_108_864 (64 MiB)
   */
  memoryBytes?: number;
  /**
   * Size of the cache of column blocks, in bytes.
   * @default a quarter of `memoryBytes`
   */
  cacheBytes?: number;
}

/**
 * Opens the database of a Durable Object, creating it if it does not exist, or one in memory. Open it once,
 * in the constructor, and share the connection: `in_use` if the object has it open already.
 */
export async function connect<S extends object = AnySchema>(
  options: EdgeOptions = {},
): Promise<ThreadDatabase<S>> {
  const { state, memoryBytes = MEMORY_BYTES, readOnly = false } = options;
  const { cacheBytes = Math.ceil(memoryBytes / 4) } = options;
  const checked = engineOptions({ ...options, memoryBytes, cacheBytes }, readOnly);
  const { wire, ask } = blobsOption('memory://', options);
  if (wire !== undefined && state !== undefined) {
    // Its uploads would have to go on while the object is not in memory.
    throw nacreError('unsupported', 'blobs are not supported with the state of a Durable Object');
  }
  if (readOnly && wire === undefined) {
    throw nacreError('type', 'readOnly needs the option blobs');
  }
  const blobs = await loadBlobs(wire, ask, () => import('./blobs.js'));
  const types = typeOptions(options);
  const imported = importOption(options);
  const files = imported === undefined ? [] : await filesOf(imported);
  if (wasCutOff()) {
    abandon('another object of this isolate was reset in the middle of a call');
    forgetCutOff();
  }
  const store = state === undefined ? null : new DurableStore(state);
  try {
    loadSync(
      () => options.wasmModule ?? first,
      () => options.moreWasmModule ?? more,
    );
  } catch (error) {
    store?.close();
    throw error;
  }
  return new ThreadDatabase<S>(await Connection.open(store, checked, files, blobs), types);
}
