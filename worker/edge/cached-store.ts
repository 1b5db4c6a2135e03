/**
 * A blob store whose blobs are kept in the cache of the place where a Worker runs, which all its isolates there
 * share. Ranges are kept as aligned blocks, encrypted if the blobs are. What is read whole is not kept: it
 * may be written again.
 */

import type { BlobInfo, WriteIf } from '../shared/blobs/blob-store.js';
import type { SourceStore } from '../shared/blobs/encrypted-store.js';

/** The part of the platform's `Cache` that is used. */
export interface BlockCache {
  match(url: string): Promise<Response | undefined>;
  put(url: string, response: Response): Promise<void>;
}

/** Length of a block. Each lookup counts as a request of the Worker. */
const BLOCK = 128 << 10;
/** No server: names in a cache are URLs. */
const ORIGIN = 'https://blobs.invalid/';
const KEPT = { 'cache-control': 'public, max-age=31536000, immutable' };

/** Keeps what is read from `source` in a cache, under names that begin with `prefix`. */
export class CachedStore implements SourceStore {
  readonly requests: { made: number };
  readonly #source: SourceStore;
  readonly #cache: BlockCache;
  readonly #prefix: string;

  constructor(source: SourceStore, cache: BlockCache, prefix: string) {
    this.#source = source;
    this.requests = source.requests;
    this.#cache = cache;
    this.#prefix = `${ORIGIN}${prefix === '' ? '' : `${prefix}/`}`;
  }

  async read(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    const bytes = end > start ? await this.#kept(name, start, end, signal) : null;
    // Its errors are those of the store.
    return bytes?.length === end - start ? bytes : this.#source.read(name, start, end, signal);
  }

  async readTo(
    name: string,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const bytes = end > start ? await this.#kept(name, start, end, signal) : null;
    return bytes !== null && bytes.length > 0
      ? bytes
      : this.#source.readTo(name, start, end, signal);
  }

  readAll(name: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; tag: string }> {
    return this.#source.readAll(name, signal);
  }

  write(name: string, bytes: Uint8Array, when: WriteIf, signal?: AbortSignal): Promise<string> {
    return this.#source.write(name, bytes, when, signal);
  }

  list(prefix: string, signal?: AbortSignal): Promise<BlobInfo[]> {
    return this.#source.list(prefix, signal);
  }

  remove(name: string, signal?: AbortSignal): Promise<void> {
    return this.#source.remove(name, signal);
  }

  /** The bytes from `start` on, up to `end` or the end of the blob. */
  async #kept(
    name: string,
    start: number,
    end: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    const first = Math.floor(start / BLOCK);
    const count = Math.floor((end - 1) / BLOCK) - first + 1;
    const blocks = await Promise.all(
      Array.from({ length: count }, (_, at) => this.#find(name, first + at)),
    );
    const fetched: Promise<void>[] = [];
    for (let at = 0; at < count; at++) {
      if (blocks[at] === null) {
        let after = at + 1;
        while (after < count && blocks[after] === null) {
          after++;
        }
        fetched.push(this.#fetch(name, first, at, after, blocks, signal));
        at = after;
      }
    }
    await Promise.all(fetched);
    return partOf(blocks as Uint8Array[], start - first * BLOCK, end - first * BLOCK);
  }

  /** Reads the blocks from `at` up to `after` in one request, and keeps them. */
  async #fetch(
    name: string,
    first: number,
    at: number,
    after: number,
    blocks: (Uint8Array | null)[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const [from, to] = [(first + at) * BLOCK, (first + after) * BLOCK];
    const bytes = await this.#source.readTo(name, from, to, signal);
    for (let block = at; block < after; block++) {
      const offset = (block - at) * BLOCK;
      blocks[block] = bytes.subarray(offset, offset + BLOCK);
    }
    await Promise.all(
      blocks.slice(at, after).map((_, n) => this.#keep(name, first + at + n, blocks[at + n]!)),
    );
  }

  async #find(name: string, block: number): Promise<Uint8Array | null> {
    this.requests.made++;
    try {
      const found = await this.#cache.match(this.#url(name, block));
      const bytes = found && new Uint8Array(await found.arrayBuffer());
      return bytes !== undefined && bytes.length > 0 && bytes.length <= BLOCK ? bytes : null;
    } catch {
      // A cache may fail: the blob is there all the same.
      return null;
    }
  }

  async #keep(name: string, block: number, bytes: Uint8Array): Promise<void> {
    if (bytes.length > 0) {
      this.requests.made++;
      const response = new Response(bytes.slice(), { headers: KEPT });
      await this.#cache.put(this.#url(name, block), response).catch(() => {});
    }
  }

  #url(name: string, block: number): string {
    return `${this.#prefix}${name}?block=${block}`;
  }
}

/** A part of bytes that are given in pieces. */
function partOf(pieces: readonly Uint8Array[], start: number, end: number): Uint8Array {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const part = new Uint8Array(Math.max(0, Math.min(end, length) - start));
  let at = 0;
  for (const piece of pieces) {
    const from = Math.max(start - at, 0);
    if (from < piece.length && at + from - start < part.length) {
      const to = at + from - start;
      part.set(piece.subarray(from, from + part.length - to), to);
    }
    at += piece.length;
  }
  return part;
}
