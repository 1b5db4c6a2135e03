/**
 * The storage of a Durable Object. What is written without waiting in between is stored together, in the order
 * of such turns, and some time later. Until then the output gate holds back what the object sends: answers,
 * and requests to a bucket. An object that ends loses a number of its last turns that are not stored.
 */

import { NO_ISOLATE } from './platform.mjs';

/** What storage has. */
class Contents {
  /** Names of files by their numbers. */
  files = new Map();
  /** By file, the extents of bytes by where they begin. */
  extents = new Map();
  /** When the object is to be woken; null if it is not. */
  alarm = null;

  copy() {
    const copy = new Contents();
    copy.files = new Map(this.files);
    copy.extents = new Map([...this.extents].map(([file, extents]) => [file, new Map(extents)]));
    copy.alarm = this.alarm;
    return copy;
  }

  of(file) {
    if (!this.extents.has(file)) {
      this.extents.set(file, new Map());
    }
    return this.extents.get(file);
  }
}

/** The statements of `durable-store.ts`: those that read, and those that change contents. */
const READS = {
  'select id, name from nacre_file': ({ files }) => [...files].map(([id, name]) => ({ id, name })),
  'select bytes from nacre_extent where file = ? and at = ?': (contents, file, at) => {
    const bytes = contents.of(file).get(at);
    return bytes === undefined ? [] : [{ bytes: bytes.slice().buffer }];
  },
  'select at, length(bytes) as bytes from nacre_extent where file = ? order by at': (
    contents,
    file,
  ) =>
    [...contents.of(file)]
      .sort(([a], [b]) => a - b)
      .map(([at, { length }]) => ({ at, bytes: length })),
};
const CHANGES = {
  'insert into nacre_file (id, name) values (?, ?)': ({ files }, id, name) => files.set(id, name),
  'delete from nacre_file where id = ?': ({ files }, id) => files.delete(id),
  'delete from nacre_extent where file = ?': ({ extents }, file) => extents.delete(file),
  'delete from nacre_extent where file = ? and at = ?': (contents, file, at) =>
    contents.of(file).delete(at),
  'insert or replace into nacre_extent (file, at, bytes) values (?, ?, ?)': (
    contents,
    file,
    at,
    bytes,
  ) => contents.of(file).set(at, new Uint8Array(bytes)),
};

export class ObjectStorage {
  #platform;
  #random;
  #settings;
  #stored = new Contents();
  #current = new Contents();
  /** Changes of each turn that is not stored yet, the last one perhaps still open. */
  #turns = [];
  #isOpen = false;
  /** Numbers of turns, from the first that there ever was. */
  #numbers = { stored: 0, begun: 0 };
  #held = [];
  #isolate = null;
  /** How often an object ended before all of its turns were stored. */
  losses = 0;

  constructor(platform, random, settings) {
    this.#platform = platform;
    this.#random = random;
    this.#settings = settings;
  }

  /** Called when the alarm that is stored may have changed. */
  alarmChanged = () => {};

  /** The alarm that is stored. */
  get alarm() {
    return this.#stored.alarm;
  }

  /** The alarm that was set last. */
  get newestAlarm() {
    return this.#current.alarm;
  }

  get hasFiles() {
    return this.#stored.files.size > 0;
  }

  /** The state for an object in a new isolate. */
  state(isolate) {
    this.#isolate = isolate;
    const mustLive = () => {
      if (this.#isolate !== isolate) {
        throw new Error('an object that has ended uses its storage');
      }
    };
    const exec = (query, ...bindings) => {
      mustLive();
      const text = query.replace(/\s+/g, ' ').trim();
      if (text.startsWith('create table if not exists ')) {
        return [];
      }
      if (text in READS) {
        return READS[text](this.#current, ...bindings);
      }
      if (!(text in CHANGES)) {
        throw new Error(`the simulation does not know ${text}`);
      }
      const values = bindings.map((value) =>
        value instanceof ArrayBuffer ? value.slice() : value,
      );
      this.#change((contents) => CHANGES[text](contents, ...values));
      return [];
    };
    const setAlarm = async (at) => {
      mustLive();
      if (this.#settings.isAlarmLate) {
        // Not in the turn of what was written.
        this.#platform.later(5_000, () => this.setAlarm(at), isolate);
      } else {
        this.setAlarm(at);
      }
    };
    return { storage: { sql: { exec }, setAlarm } };
  }

  setAlarm(at) {
    this.#change((contents) => (contents.alarm = at));
  }

  /** Settles, in the object's isolate, when all that is written now is stored. */
  gate() {
    const { begun, stored } = this.#numbers;
    return begun === stored
      ? Promise.resolve()
      : new Promise((open) => this.#held.push({ until: begun, open, isolate: this.#isolate }));
  }

  /** The object ends, between two of its tasks: the turns that are not stored are lost from some turn on. */
  end() {
    const kept = this.#random.below(this.#turns.length + 1);
    this.losses += kept < this.#turns.length ? 1 : 0;
    this.#turns.slice(0, kept).forEach((turn) => this.#store(turn));
    this.#turns = [];
    this.#held = [];
    this.#numbers.stored = this.#numbers.begun;
    this.#current = this.#stored.copy();
    this.#isolate = null;
    this.alarmChanged();
  }

  #change(change) {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#turns.push([]);
      this.#numbers.begun++;
      queueMicrotask(() => this.#close());
    }
    this.#turns.at(-1).push(change);
    change(this.#current);
  }

  #close() {
    this.#isOpen = false;
    const number = this.#numbers.begun;
    const ms = this.#random.below(this.#settings.storeMs + 1);
    this.#platform.later(ms, () => this.#storeTo(number), NO_ISOLATE);
  }

  /** Stores all turns up to a number. */
  #storeTo(number) {
    while (this.#numbers.stored < number) {
      this.#store(this.#turns.shift());
      this.#numbers.stored++;
    }
    const open = this.#held.filter(({ until }) => until <= this.#numbers.stored);
    this.#held = this.#held.filter(({ until }) => until > this.#numbers.stored);
    open.forEach((each) => this.#platform.later(0, each.open, each.isolate));
    this.alarmChanged();
  }

  #store(turn) {
    turn.forEach((change) => change(this.#stored));
  }
}
