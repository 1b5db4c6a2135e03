/**
 * The edge's platform on a simulated clock: tasks of isolates run one after another, each with all of its
 * promises, and the clock stands still while one runs. An isolate that ends takes its tasks with it.
 */

const realImmediate = setImmediate;

/** A task that belongs to no isolate: of the network, of storage, of the platform itself. */
export const NO_ISOLATE = null;

export class Platform {
  /** Milliseconds. */
  now = 1_790_000_000_000;
  /** The isolate whose task runs. */
  isolate = NO_ISOLATE;
  #tasks = [];
  #count = 0;
  #ended = new WeakSet();

  /** Takes the place of the clock, of timers and of randomness for this thread. */
  install(random) {
    Date.now = () => this.now;
    performance.now = () => this.now;
    globalThis.setTimeout = (work, ms = 0) => this.later(ms, work, this.isolate);
    globalThis.clearTimeout = (task) => this.cancel(task);
    // The script uses neither, whether the platform has them or not.
    globalThis.setImmediate = undefined;
    globalThis.MessageChannel = undefined;
    Math.random = () => random.bits() / 2 ** 32;
    const fill = (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      bytes.forEach((_, at) => (bytes[at] = random.bits()));
      return array;
    };
    const randomUUID = () => Array.from({ length: 4 }, () => random.bits().toString(16)).join('-');
    Object.defineProperty(globalThis, 'crypto', { value: { getRandomValues: fill, randomUUID } });
  }

  /** Runs something later, unless its isolate ends before. */
  later(ms, work, isolate) {
    const task = { at: this.now + Math.max(0, ms), order: this.#count++, work, isolate };
    if (isolate === NO_ISOLATE || !this.#ended.has(isolate)) {
      this.#tasks.push(task);
    }
    return task;
  }

  cancel(task) {
    this.#tasks = this.#tasks.filter((each) => each !== task);
  }

  end(isolate) {
    this.#ended.add(isolate);
    this.#tasks = this.#tasks.filter((task) => task.isolate !== isolate);
  }

  /** Runs something now as part of an isolate, with the promises that it settles. */
  async as(isolate, work) {
    this.isolate = isolate;
    try {
      // Not what it answers, which may take other tasks.
      void work();
    } finally {
      await new Promise((resolve) => realImmediate(resolve));
      this.isolate = NO_ISOLATE;
    }
  }

  /** Runs the next task, if there is one that is due within some time. Answers whether. */
  async step(withinMs = Infinity) {
    const first = this.#tasks.reduce(
      (best, task) =>
        best === null || task.at < best.at || (task.at === best.at && task.order < best.order)
          ? task
          : best,
      null,
    );
    if (first === null || first.at > this.now + withinMs) {
      return false;
    }
    this.cancel(first);
    this.now = Math.max(this.now, first.at);
    await this.as(first.isolate, first.work);
    return true;
  }

  /** Lets time pass. */
  async pass(ms) {
    const until = this.now + ms;
    while (await this.step(until - this.now));
    this.now = until;
  }
}
