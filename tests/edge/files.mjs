/** A Durable Object that writes files at random, and compares them with copies in memory. */

import { DurableStore } from '../../worker/edge/durable-store.ts';

const NAMES = ['a', 'b', 'c', 'log-1'];

function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Lengths around those at which extents are cut and made longer. */
const length = (below) =>
  below([1, 20, 4_097, 8_193, 30_000][below(5)]) + (below(4) === 0 ? [4_096, 8_192][below(2)] : 0);

class Model {
  files = new Map();
  open = new Map();

  constructor(store, below) {
    this.store = store;
    this.below = below;
  }

  step() {
    const { store, below, files, open } = this;
    const name = NAMES[below(NAMES.length)];
    const bytes = files.get(name);
    if (bytes === undefined) {
      files.set(name, new Uint8Array(0));
      open.set(name, store.create(name));
      return;
    }
    const file = open.get(name) ?? store.open(name);
    open.set(name, file);
    switch (below(12)) {
      case 0:
        store.remove(name);
        files.delete(name);
        open.delete(name);
        return;
      case 1: {
        const next = new Uint8Array(below(bytes.length * 2 + 100));
        next.set(bytes.subarray(0, next.length));
        store.truncate(file, next.length);
        files.set(name, next);
        return;
      }
      default: {
        const part = Uint8Array.from({ length: length(below) }, () => below(256));
        const at = below(3) === 0 ? below(bytes.length + 500) : bytes.length;
        store.write(file, at, part);
        if (part.length === 0) {
          return;
        }
        const next = new Uint8Array(Math.max(bytes.length, at + part.length));
        next.set(bytes);
        next.set(part, at);
        files.set(name, next);
      }
    }
  }

  compare() {
    const { store, below, files } = this;
    const names = [...files.keys()].sort().join();
    if (store.list().sort().join() !== names) {
      throw new Error(`files ${store.list().join()}, expected ${names}`);
    }
    let sum = 0;
    for (const [name, bytes] of files) {
      const file = store.open(name);
      sum += bytes.length;
      const from = below(bytes.length + 1);
      const found = new Uint8Array(below(bytes.length - from + 1));
      store.read(file, from, found);
      if (store.len(file) !== bytes.length || found.some((byte, at) => byte !== bytes[from + at])) {
        throw new Error(`${name} of ${bytes.length} bytes differs from ${from} on`);
      }
      let error = null;
      try {
        store.read(file, bytes.length, new Uint8Array(1));
      } catch ({ kind }) {
        error = kind;
      }
      if (error !== 'corrupt') {
        throw new Error(`${name} is read beyond its end`);
      }
    }
    if (store.bytes() !== sum) {
      throw new Error(`${store.bytes()} bytes, expected ${sum}`);
    }
  }
}

export class Files {
  #state;

  constructor(state) {
    this.#state = state;
  }

  async fetch(request) {
    const seed = Number(new URL(request.url).searchParams.get('seed'));
    const below = numbers(seed);
    const model = new Model(new DurableStore(this.#state), below);
    for (let step = 0; step < 300; step++) {
      model.step();
      model.compare();
      if (below(20) === 0) {
        model.store.close();
        model.store = new DurableStore(this.#state);
        model.open.clear();
      }
    }
    const lengths = [...model.files.values()].map(({ length }) => length);
    model.store.close();
    return Response.json(lengths);
  }
}

export default {
  fetch(request, { TENANT }) {
    const { searchParams } = new URL(request.url);
    return TENANT.get(TENANT.idFromName(searchParams.get('seed'))).fetch(request);
  },
};
