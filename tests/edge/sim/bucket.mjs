/** A bucket of R2 that is slow, fails, and fails after it has done what it was asked. */

import { NO_ISOLATE } from './platform.mjs';

export class SimBucket {
  #platform;
  #random;
  #settings;
  #objects = new Map();
  #tags = 0;
  /** Until when every call fails. */
  awayUntil = 0;
  faults = 0;
  requests = 0;

  constructor(platform, random, settings) {
    this.#platform = platform;
    this.#random = random;
    this.#settings = settings;
  }

  /** Fails no more. */
  settle() {
    this.awayUntil = 0;
    this.#settings = { ...this.#settings, faulty: 0 };
  }

  /** The bucket as an isolate has it, whose requests leave when `gate` opens. */
  binding(isolate, gate) {
    const bind =
      (name) =>
      async (...args) => {
        await gate();
        return this.#call(name, args, isolate);
      };
    return Object.fromEntries(
      ['get', 'head', 'put', 'delete', 'list'].map((name) => [name, bind(name)]),
    );
  }

  #call(name, args, isolate) {
    this.requests++;
    const [there, back] = [0, 1].map(() => this.#random.below(this.#settings.latencyMs + 1));
    return new Promise((resolve, reject) => {
      const arrive = () => {
        const fault = this.#fault();
        const answer = (settle, value) => this.#platform.later(back, () => settle(value), isolate);
        if (fault === 'before') {
          answer(reject, new Error(`${name}: We encountered an internal error (10001)`));
          return;
        }
        let value;
        try {
          value = this[`_${name}`](...args);
        } catch (error) {
          answer(reject, error);
          return;
        }
        if (fault === 'after') {
          answer(reject, new Error(`${name}: Network connection lost.`));
        } else {
          answer(resolve, value);
        }
      };
      // What has left arrives, also if its sender ends.
      this.#platform.later(there, arrive, NO_ISOLATE);
    });
  }

  #fault() {
    const isAway = this.#platform.now < this.awayUntil;
    if (!isAway && !this.#random.percent(this.#settings.faulty)) {
      return null;
    }
    this.faults++;
    return isAway || this.#random.percent(50) ? 'before' : 'after';
  }

  _get(key, { range } = {}) {
    const object = this.#objects.get(key);
    if (object === undefined) {
      return null;
    }
    const { offset, length } = range ?? { offset: 0, length: object.size };
    if (offset >= object.size && object.size > 0) {
      throw new Error('get: The requested range is not satisfiable (10039)');
    }
    const bytes = object.bytes.slice(offset, offset + length);
    return { ...object, arrayBuffer: async () => bytes.buffer };
  }

  _head(key) {
    return this.#objects.get(key) ?? null;
  }

  _put(key, value, { onlyIf, customMetadata = {} } = {}) {
    const present = this.#objects.get(key);
    if (
      (onlyIf?.etagDoesNotMatch === '*' && present !== undefined) ||
      (onlyIf?.etagMatches !== undefined && present?.etag !== onlyIf.etagMatches)
    ) {
      return null;
    }
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
    const uploaded = new Date(this.#platform.now);
    const etag = `tag-${this.#tags++}`;
    const object = { key, size: bytes.length, etag, uploaded, customMetadata, bytes };
    this.#objects.set(key, object);
    return object;
  }

  _delete(key) {
    this.#objects.delete(key);
  }

  _list({ prefix, cursor }) {
    const keys = [...this.#objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    const from = cursor === undefined ? 0 : keys.findIndex((key) => key > cursor);
    const page = from < 0 ? [] : keys.slice(from, from + 7);
    const truncated = page.length > 0 && page.at(-1) !== keys.at(-1);
    return {
      objects: page.map((key) => this.#objects.get(key)),
      truncated,
      ...(truncated ? { cursor: page.at(-1) } : {}),
    };
  }
}

/** The cache of a place, which may forget. */
export class SimCache {
  #random;
  #kept = new Map();

  constructor(random) {
    this.#random = random;
  }

  async match(url) {
    const bytes = this.#random.percent(10) ? undefined : this.#kept.get(url);
    return bytes && { arrayBuffer: async () => bytes.slice().buffer };
  }

  async put(url, { bytes }) {
    this.#kept.set(url, bytes);
  }
}

/** What is put into the cache: the platform's `Response`, as far as it is used. */
export class SimResponse {
  constructor(bytes) {
    this.bytes = bytes.slice();
  }
}
