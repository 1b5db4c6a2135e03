/** Options of `connect` and of single calls, and their checks. */

import type {
  Ask,
  BlobCredentials,
  BlobRequest,
  BlobsOptions,
  WireBlobs,
} from '../../../worker/shared/blobs/options.js';
import { isBlobsUrl } from '../../../worker/shared/blobs/url.js';
import { nacreError } from '../../../worker/shared/errors.js';
import type { EngineOptions, Fallback } from '../../../worker/shared/wire.js';
import type { TypeOptions } from './types.js';

/**
 * Options of `connect`.
 *
 * @example
 * ```ts
 * const db = await connect('memory://', {
 *   durability: 'relaxed',
 *   memoryBytes: 512 * 1024 * 1024,
 *   types: { bigint: 'number' },
 * });
 * const { rows } = await db.query('select count(*) as n from (values (1), (2)) as t(a)');
 * console.log(rows); // [ { n: 2 } ]
 * await db.close();
 * ```
 */
export interface ConnectOptions {
  /**
   * `strict`: a commit is durable when it is answered. `relaxed`: it is durable about 100 ms later.
   * `blob`, with `blobs`: it is answered once it is uploaded, so that the loss of the local files loses
   * nothing that was answered.
   * @default 'strict'
   */
  durability?: 'strict' | 'relaxed' | 'blob';
  /**
   * Memory of the whole database, in bytes. Half of it is for statements, a quarter for rows that
   * are not in segments yet, an eighth for the cache of column blocks, an eighth for metadata.
   * `information_schema.memory` lists the parts.
   * @default 1_073_741_824 (1 GiB), with a cache of 64 MiB
   */
  memoryBytes?: number;
  /**
   * Memory limit of one statement, in bytes, within what all statements share.
   * @default half of `memoryBytes`
   */
  memoryLimit?: number;
  /**
   * Size of the cache of column blocks, in bytes.
   * @default an eighth of `memoryBytes`, or 67_108_864 (64 MiB) without it
   */
  cacheBytes?: number;
  /**
   * Opens a database whose log lacks its end, without the commits that are missing. Without this
   * option, such a database is `corrupt`. `db.storage()` says what was given up.
   * @default false
   */
  acceptLoss?: boolean;
  /**
   * A database to begin with: the file that `db.export()` made. Fails with `already_exists` if there
   * is a database at the URL.
   */
  import?: Blob | Uint8Array<ArrayBuffer> | ArrayBuffer;
  /**
   * What keeps an `opfs://` database where a page has no private file system, as in private windows of
   * some browsers: nothing, so that `connect` fails with `unsupported`; `'memory'`, until it is closed;
   * or `'indexeddb'`, as durably as files, but all of it is in memory as well. `db.storage()` says
   * what keeps it.
   * @default 'none'
   */
  fallback?: 'none' | 'memory' | 'indexeddb';
  /** JavaScript types of SQL values. */
  types?: TypeOptions;
  /** URL of the engine's WebAssembly file. By default it is beside the package's scripts. */
  wasmUrl?: string | URL;
  /** The engine's WebAssembly module, if already compiled. Takes precedence over `wasmUrl`. */
  wasmModule?: WebAssembly.Module;
  /**
   * URL of the engine's second WebAssembly file, which has what most pages never need, and is
   * fetched when it is needed. By default it is `nacre_more.wasm` beside the first one.
   */
  moreWasmUrl?: string | URL;
  /** The second WebAssembly module, if already compiled. Takes precedence over `moreWasmUrl`. */
  moreWasmModule?: WebAssembly.Module;
  /**
   * Fetches and compiles the second WebAssembly file as soon as the first one is there, so that no
   * statement waits for it. Node always loads both.
   * @default false
   */
  preload?: boolean;
  /** URL of the worker's script, in browsers. By default it is beside the package's scripts. */
  workerUrl?: string | URL;
  /**
   * A blob store that has the database's files, too: the URL `s3://bucket/prefix`, or how it is reached.
   * Everything that is committed is uploaded in the background; another machine opens the database with
   * the same blobs, and is its only writer then.
   */
  blobs?: string | BlobsOptions;
  /**
   * With `blobs`, how many bytes of the database's files are kept here at most. What is uploaded leaves,
   * and is fetched again when it is read. What is not uploaded yet stays, also beyond the limit.
   * @default unlimited
   */
  diskLimit?: number;
  /**
   * With `blobs`, the milliseconds from a commit to its upload: what the loss of the local files loses.
   * @default 1_000
   */
  blobLag?: number;
  /**
   * With `blobs`, milliseconds for which a call waits for a blob store that is away: opening, reads of what is
   * not here, commits with `durability: 'blob'`, and closing.
   * @default 30_000
   */
  blobPatience?: number;
  /**
   * Of a database whose URL is a blob store, the state of the past to open: a position of its log, as `db.lag()`
   * has it, or a time, which stands for the last upload before it, to a second. It does not change. `not_found` if the
   * blobs do not have it, any more or yet: see `historyMs` in `blobs`.
   */
  asOf?: number | Date;
  /**
   * Of a database whose URL is a blob store, the milliseconds between two looks for what its writer has
   * uploaded since. Without it, `db.refresh()` looks. It keeps a process of Node running until the
   * database is closed.
   */
  follow?: number;
  /**
   * URL of the script of blob stores, in browsers, which is loaded only with `blobs`. By default it is
   * beside the worker's script.
   */
  blobsUrl?: string | URL;
}

/**
 * Options of one call.
 *
 * @example
 * ```ts
 * const signal = AbortSignal.timeout(5_000);
 * // Ends with an error of kind `cancelled` if it takes longer than five seconds.
 * const { rows } = await db.query('select max(ms) as ms from visit', [], { signal });
 * console.log(rows); // [ { ms: 120 } ]
 * ```
 */
export interface CallOptions {
  /**
   * Cancels the call when it aborts: a running statement ends with an error of kind `cancelled`, and
   * has changed nothing.
   */
  signal?: AbortSignal;
}

/**
 * Options of a statement.
 *
 * @example
 * ```ts
 * let done = 0;
 * const onProgress = (rows: number, fraction: number): void => {
 *   done = fraction;
 * };
 * const sql = 'select page, count(*) as n from visit group by page';
 * const { rowCount } = await db.query(sql, [], { onProgress });
 * console.log(rowCount, done); // 2 0
 * ```
 */
export interface StatementOptions extends CallOptions {
  /**
   * Called about ten times a second while the statement runs, with the number of rows it has read,
   * and an estimate of the part that is done, from 0 to 1. An error that it throws cancels the
   * statement.
   */
  onProgress?: (rows: number, fraction: number) => void;
}

const TYPE_CHOICES: Record<keyof TypeOptions, readonly string[]> = {
  bigint: ['bigint', 'number'],
  decimal: ['string', 'number'],
  date: ['date', 'string'],
  json: ['value', 'string'],
};

/** Checks the option `types`. */
export function typeOptions({ types = {} }: ConnectOptions): TypeOptions {
  for (const [name, value] of Object.entries(types)) {
    const choices = TYPE_CHOICES[name as keyof TypeOptions] as readonly string[] | undefined;
    if (choices === undefined) {
      throw nacreError('type', `types has no option '${name}'`);
    }
    if (value !== undefined && !choices.includes(value as string)) {
      const all = choices.map((choice) => `'${choice}'`).join(' or ');
      throw nacreError('type', `types.${name} must be ${all}, not '${String(value)}'`);
    }
  }
  return types;
}

/** Checks the option `fallback`. */
export function fallbackOption({ fallback }: ConnectOptions): Fallback | undefined {
  if (fallback !== undefined && !['none', 'memory', 'indexeddb'].includes(fallback)) {
    throw nacreError(
      'type',
      `fallback must be 'none', 'memory' or 'indexeddb', not '${String(fallback)}'`,
    );
  }
  return fallback;
}

/** Checks the option `preload`. */
export function preloadOption({ preload }: ConnectOptions): boolean | undefined {
  if (preload !== undefined && typeof preload !== 'boolean') {
    throw nacreError('type', `preload must be true or false, not '${String(preload)}'`);
  }
  return preload;
}

/** Checks the option `import`. */
export function importOption({ import: file }: ConnectOptions): Blob | undefined {
  if (file === undefined || file instanceof Blob) {
    return file;
  }
  if (file instanceof Uint8Array || file instanceof ArrayBuffer) {
    return new Blob([file]);
  }
  throw nacreError('type', 'import must be a Blob, a Uint8Array or an ArrayBuffer');
}

/** The blob store of a database, and what answers its questions. */
export interface Blobs {
  wire?: WireBlobs;
  /** Whether there are any. */
  asks: boolean;
  ask: Ask;
}

/** Takes the functions from the option `blobs`. The script of blob stores checks the rest. */
export function blobsOption(url: string, options: ConnectOptions): Blobs {
  const isOnly = isBlobsUrl(url);
  const { blobs = isOnly ? {} : undefined } = options;
  if (blobs === undefined) {
    const lonely = (['diskLimit', 'blobLag', 'blobPatience', 'asOf'] as const).find(
      (name) => options[name] !== undefined,
    );
    if (lonely !== undefined || options.durability === 'blob') {
      throw nacreError('type', `${lonely ?? "durability 'blob'"} needs the option blobs`);
    }
    return { asks: false, ask: async () => {} };
  }
  const given = typeof blobs === 'string' ? { url: blobs } : blobs;
  if (given === null || typeof given !== 'object') {
    throw nacreError('type', 'blobs must be a URL or an object');
  }
  if (isOnly && given.url !== undefined && given.url !== url) {
    throw nacreError('type', `blobs.url must be ${url}`);
  }
  mayHaveBlobs(options);
  const { credentials, presign, ...rest } = given;
  const isAsked = typeof credentials === 'function';
  return {
    wire: {
      asOf: options.asOf,
      ...rest,
      url: isOnly ? url : (given.url as string),
      ...(credentials && { credentials: isAsked ? 'asked' : credentials }),
      ...(presign && { presign: 'asked' }),
    },
    asks: isAsked || presign !== undefined,
    ask: async (request): Promise<BlobCredentials | string> =>
      request === null
        ? (credentials as () => BlobCredentials)()
        : (presign as (request: BlobRequest) => string)(request),
  };
}

/** Checks that nothing is asked for that a database with blobs cannot do. */
export function mayHaveBlobs(options: Pick<ConnectOptions, 'import'>): void {
  if (options.import !== undefined) {
    throw nacreError('unsupported', 'import with blobs is not supported');
  }
}

const DURABILITIES = ['strict', 'relaxed', 'blob'];

/** Checks the options that the engine takes, and answers them. `readOnly` is for those of URLs. */
export function engineOptions(options: ConnectOptions, readOnly?: boolean): EngineOptions {
  const {
    durability,
    memoryBytes,
    memoryLimit,
    cacheBytes,
    acceptLoss,
    diskLimit,
    blobLag,
    blobPatience,
    follow,
  } = options;
  if (durability !== undefined && !DURABILITIES.includes(durability)) {
    throw nacreError(
      'type',
      `durability must be 'strict', 'relaxed' or 'blob', not '${String(durability)}'`,
    );
  }
  for (const [name, value] of Object.entries({ memoryBytes, memoryLimit, cacheBytes, diskLimit })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
      throw nacreError('type', `${name} must be a positive number of bytes, not ${String(value)}`);
    }
  }
  if (acceptLoss !== undefined && typeof acceptLoss !== 'boolean') {
    throw nacreError('type', `acceptLoss must be true or false, not '${String(acceptLoss)}'`);
  }
  if (follow !== undefined && readOnly !== true) {
    throw nacreError('type', 'follow needs an s3:// URL');
  }
  for (const [name, value] of Object.entries({ blobLag, blobPatience, follow })) {
    if (value !== undefined && !(value >= (name === 'follow' ? 1 : 0) && value < Infinity)) {
      throw nacreError('type', `${name} must be a number of milliseconds, not ${String(value)}`);
    }
  }
  return {
    durability,
    memoryBytes,
    memoryLimit,
    cacheBytes,
    acceptLoss,
    readOnly,
    diskLimit,
    blobLag,
    blobPatience,
    followMs: follow,
  };
}
