/**
 * The package at the edge, in Cloudflare Workers and their Durable Objects: the engine runs in the caller's
 * thread. Code may not be compiled there, so both parts of the engine are imported with the script.
 */

import first from './nacre_bg.wasm';
import more from './nacre_more.wasm';
import { filesOf } from '../../../worker/shared/archive.js';
import { Alarm } from '../../../worker/edge/alarm.js';
import { type BlockCache, CachedStore } from '../../../worker/edge/cached-store.js';
import { DurableStore, wasCutOff, type DurableState } from '../../../worker/edge/durable-store.js';
import { loadBlobs } from '../../../worker/shared/blobs/load.js';
import { type Bucket, openBucket } from '../../../worker/edge/r2-store.js';
import {
  type Check,
  COMMON,
  checkOptions,
  isObject,
  settingsOf,
} from '../../../worker/shared/blobs/checks.js';
import { encrypted, type SourceStore } from '../../../worker/shared/blobs/encrypted-store.js';
import { EngineBlobs } from '../../../worker/shared/blobs/engine-blobs.js';
import { nacreError } from '../../../worker/shared/errors.js';
import { Connection } from '../../../worker/shared/connection.js';
import { loadSync, watch } from '../../../worker/shared/engine.js';
import { EdgeDatabase } from './edge-database.js';
import {
  blobsOption,
  engineOptions,
  importOption,
  mayHaveBlobs,
  typeOptions,
  type ConnectOptions,
} from './options.js';
import type { BlobsOptions, KeepOptions } from '../../../worker/shared/blobs/options.js';
import type { AnySchema } from './schema.js';

export * from './public.js';
export type { DurableState } from '../../../worker/edge/durable-store.js';
export type { AlarmStorage } from '../../../worker/edge/alarm.js';
export type { BlockCache } from '../../../worker/edge/cached-store.js';
export type { Bucket } from '../../../worker/edge/r2-store.js';
export type { EdgeDatabase } from './edge-database.js';

/** An isolate has 128 MB, of which the engine's code and the application take their share. */
const MEMORY_BYTES = 64 * 2 ** 20;
/** The storage of an object has 10 GB, and is paid for. */
const DISK_BYTES = 2 ** 30;
/** An object that is opened in `blockConcurrencyWhile` is reset after 30 s. */
const PATIENCE_MS = 10_000;

watch(() =>
  wasCutOff() ? 'another object of this isolate was reset in the middle of a call' : null,
);

/** A blob store in a bucket of R2 that is bound to the Worker. */
export interface BucketOptions
  extends KeepOptions, Pick<BlobsOptions, 'encryptionKey' | 'retryForMs'> {
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
   * A cache that keeps what was read from `blobs`, for all isolates in one place: `await caches.open('shop')`.
   * It is of one bucket only, and not of one that was emptied and filled again.
   */
  cache?: BlockCache;
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
  /**
   * With `blobs` and `state`, how many bytes of the database's files the object keeps at most. What is
   * uploaded leaves, and is fetched again when it is read. What is not uploaded yet stays, also beyond the
   * limit.
   * @default 1_073_741_824 (1 GiB)
   */
  diskLimit?: number;
  /**
   * With `blobs`, milliseconds for which a call waits for a blob store that is away, see `ConnectOptions`.
   * @default 30_000, with `state` 10_000
   */
  blobPatience?: number;
}

/**
 * Opens the database of a Durable Object, creating it if it does not exist, or one in memory. Open it once,
 * in the constructor, and share the connection: `in_use` if the object has it open already.
 */
export async function connect<S extends object = AnySchema>(
  options: EdgeOptions = {},
): Promise<EdgeDatabase<S>> {
  const { state, memoryBytes = MEMORY_BYTES, readOnly = false } = options;
  const { cacheBytes = Math.ceil(memoryBytes / 4) } = options;
  const checked = engineOptions({ ...options, memoryBytes, cacheBytes }, readOnly);
  const blobs = await blobsOf(options);
  if (readOnly && blobs === undefined) {
    throw nacreError('type', 'readOnly needs the option blobs');
  }
  if (readOnly && state !== undefined) {
    throw nacreError('unsupported', 'readOnly is not supported with the state of a Durable Object');
  }
  const hasUploads = state !== undefined && blobs !== undefined;
  if (hasUploads) {
    checked.diskLimit ??= DISK_BYTES;
    checked.blobPatience ??= PATIENCE_MS;
  }
  const alarm = hasUploads ? new Alarm(state.storage) : undefined;
  const types = typeOptions(options);
  const imported = importOption(options);
  const files = imported === undefined ? [] : await filesOf(imported);
  const store = state === undefined ? null : new DurableStore(state, alarm);
  try {
    if (store?.list().length === 0) {
      // Without an alarm, a new database is not begun.
      alarm?.wrote();
      await alarm?.settled();
    }
    // Last, and without waiting before the opening: an engine may be given up at any time.
    loadSync(
      () => options.wasmModule ?? first,
      () => options.moreWasmModule ?? more,
    );
  } catch (error) {
    store?.close();
    throw error;
  }
  return new EdgeDatabase<S>(await Connection.open(store, checked, files, blobs), types, alarm);
}

/** The blob store of the options, if they have one. */
async function blobsOf(options: EdgeOptions): Promise<EngineBlobs | undefined> {
  const { blobs: given, cache, ...others } = options;
  if (cache !== undefined && typeof cache?.match !== 'function') {
    throw nacreError('type', 'cache must be a Cache');
  }
  if (cache !== undefined && given === undefined) {
    throw nacreError('type', 'cache needs the option blobs');
  }
  const around = (source: SourceStore, prefix: string): SourceStore =>
    cache === undefined ? source : new CachedStore(source, cache, prefix);
  if (isBucket(given)) {
    mayHaveBlobs(options);
    const all = { asOf: options.asOf, ...given };
    checkOptions(all, BUCKET_CHECKS, 'bucket');
    const { bucket, prefix = '', encryptionKey, retryForMs } = given;
    const store = around(openBucket(bucket, prefix, retryForMs), prefix);
    const settings = settingsOf({ ...DEFAULTS, ...all });
    return new EngineBlobs(encrypted(store, encryptionKey), settings);
  }
  const all = given === undefined ? others : { ...others, blobs: given };
  const { wire, ask } = blobsOption('memory://', all);
  // What is no URL is refused where the others are checked.
  const prefix = String(wire?.url).replace(/^.*?:\/\/[^/]*\/?/, '');
  return loadBlobs(
    wire && { ...DEFAULTS, ...wire },
    ask,
    () => import('./blobs.js'),
    (source) => around(source, prefix),
  );
}

/** Nothing runs between two calls, and requests cost: what needs either is there if it is asked for. */
const DEFAULTS = { historyMs: 0, leaseMs: 0, warm: false };

function isBucket(blobs: EdgeOptions['blobs']): blobs is BucketOptions {
  return isObject(blobs) && 'bucket' in blobs;
}

const BUCKET_CHECKS: Record<keyof BucketOptions, Check> = {
  ...COMMON,
  bucket: [(value) => isObject(value) && typeof value.put === 'function', 'a bucket of R2'],
  prefix: [(value) => typeof value === 'string', 'a text'],
};
