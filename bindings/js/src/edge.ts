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
import { type Bucket, openBucket } from '../../../worker/edge/r2-store.js';
import { KEY, encrypted, isKey } from '../../../worker/shared/blobs/encrypted-store.js';
import { EngineBlobs } from '../../../worker/shared/blobs/engine-blobs.js';
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
import type { BlobsOptions } from '../../../worker/shared/blobs/options.js';
import type { AnySchema } from './schema.js';
import { ThreadDatabase } from './thread-database.js';

export * from './public.js';
export type { DurableState } from '../../../worker/edge/durable-store.js';
export type { Bucket } from '../../../worker/edge/r2-store.js';

/** An isolate has 128 MB, of which the engine's code and the application take their share. */
const MEMORY_BYTES = 64 * 2 ** 20;

/** A blob store in a bucket of R2 that is bound to the Worker. */
export interface BucketOptions extends Pick<BlobsOptions, 'encryptionKey' | 'retryForMs'> {
  /** The bucket, of the Worker's environment. */
  bucket: Bucket;
  /**
   * What the names of the objects begin with, before a slash.
   * @default ''
   */
  prefix?: string | undefined;
}

/** Options of `connect` at the edge. */
export interface EdgeOptions extends Omit<
  ConnectOptions,
  'fallback' | 'wasmUrl' | 'moreWasmUrl' | 'preload' | 'workerUrl' | 'blobsUrl' | 'blobs'
> {
  /** A blob store that has the files, by URL or as a bucket of R2, see `ConnectOptions`. */
  blobs?: string | BlobsOptions | BucketOptions;
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
  const { blobs: given, ...others } = options;
  const isBucket = typeof given === 'object' && given !== null && 'bucket' in given;
  // What goes with any blob store is checked alike.
  const named = isBucket ? { url: 'r2' } : given;
  const all = named === undefined ? others : { ...others, blobs: named };
  const { wire, ask } = blobsOption('memory://', all);
  if (wire !== undefined && state !== undefined) {
    // Its uploads would have to go on while the object is not in memory.
    throw nacreError('unsupported', 'blobs are not supported with the state of a Durable Object');
  }
  if (readOnly && wire === undefined) {
    throw nacreError('type', 'readOnly needs the option blobs');
  }
  const blobs = isBucket
    ? bucketBlobs(given)
    : await loadBlobs(wire, ask, () => import('./blobs.js'));
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

function bucketBlobs(options: BucketOptions): EngineBlobs {
  const { bucket, prefix = '', encryptionKey, retryForMs, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw nacreError('type', `blobs with a bucket has no option '${unknown}'`);
  }
  if (typeof bucket?.put !== 'function') {
    throw nacreError('type', 'blobs.bucket must be a bucket of R2');
  }
  if (typeof prefix !== 'string') {
    throw nacreError('type', 'blobs.prefix must be a text');
  }
  if (!(retryForMs === undefined || (typeof retryForMs === 'number' && retryForMs >= 0))) {
    throw nacreError('type', 'blobs.retryForMs must be a number of milliseconds');
  }
  if (!(encryptionKey === undefined || isKey(encryptionKey))) {
    throw nacreError('type', `blobs.encryptionKey must be ${KEY}`);
  }
  return new EngineBlobs(encrypted(openBucket(bucket, prefix, retryForMs), encryptionKey));
}
