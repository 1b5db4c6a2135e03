/**
 * A blob store as the engine's WebAssembly module calls it (`bindings/wasm/src/blobs.rs`): with names,
 * numbers and bytes. A call is given up by its promise.
 */

import { nacreError } from '../errors.js';
import type { BlobInfo, BlobStore } from './blob-store.js';
import type { Settings } from './checks.js';

/** The calls of one database. */
export class EngineBlobs {
  readonly #store: BlobStore;
  readonly settings: Settings;
  readonly #elsewhere: ((url: string) => BlobStore) | undefined;
  /** What gives up the calls in progress. */
  readonly #running = new WeakMap<Promise<unknown>, AbortController>();

  /** `elsewhere` opens the blobs of another database, reached as these, of which this is a branch. */
  constructor(store: BlobStore, settings: Settings = {}, elsewhere?: (url: string) => BlobStore) {
    this.#store = store;
    this.settings = settings;
    this.#elsewhere = elsewhere;
  }

  elsewhere(url: string): EngineBlobs {
    if (this.#elsewhere === undefined) {
      throw nacreError(
        'unsupported',
        `reading ${url}, of which this is a branch, is not supported here`,
      );
    }
    return new EngineBlobs(this.#elsewhere(url));
  }

  read(name: string, start: number, end: number): Promise<Uint8Array> {
    return this.#run((signal) => this.#store.read(name, start, end, signal));
  }

  readAll(name: string): Promise<{ bytes: Uint8Array; tag: string }> {
    return this.#run((signal) => this.#store.readAll(name, signal));
  }

  /** Writes a blob: only if there is none, only if it has the tag, or always. `bytes` are the call's own. */
  write(name: string, bytes: Uint8Array, isNew: boolean, tag: string | undefined): Promise<string> {
    const when = tag === undefined ? (isNew ? 'absent' : 'any') : { tag };
    return this.#run((signal) => this.#store.write(name, bytes, when, signal));
  }

  list(prefix: string): Promise<BlobInfo[]> {
    return this.#run((signal) => this.#store.list(prefix, signal));
  }

  remove(name: string): Promise<void> {
    return this.#run((signal) => this.#store.remove(name, signal));
  }

  /** Nothing waits for a call any more. One that has ended stays as it is. */
  giveUp(call: Promise<unknown>): void {
    this.#running.get(call)?.abort();
  }

  #run<T>(begin: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const call = begin(controller.signal);
    this.#running.set(call, controller);
    return call;
  }
}
