/**
 * A simulated browser for tabs that share a database: one seed decides how long messages, locks and
 * files take, and when tabs are killed, closed and frozen. Time is virtual. The engine is replaced
 * by a list of rows, which remembers how often each was written, and by whom.
 */

import { nacreError } from '../../../../worker/shared/errors.js';
import { Leading, type Shareable } from '../../../../worker/shared/leading.js';
import { Opening } from '../../../../worker/shared/opening.js';
import type { Call, Reply, Service } from '../../../../worker/shared/protocol.js';
import { serve, type ServerPort } from '../../../../worker/shared/server.js';
import type { Channel, Locks, Medium } from '../../../../worker/shared/tabs.js';
import type { OpenRequest } from '../../../../worker/shared/wire.js';
import { MessageTransport, type ClientPort } from '../../src/message-transport.js';
import type { TabHost } from '../../src/tab.js';
import { Rows } from './rows.js';

/** Deviations from what a browser does, which a simulation must find. */
export interface Planted {
  /** Files are given to several workers at a time. */
  sharedFiles?: boolean;
  /** A lock cannot be taken from the tab that holds it. */
  noSteal?: boolean;
}

/** Something that runs tasks: a page or a worker. */
export class Context {
  isAlive = true;
  isFrozen = false;
  readonly backlog: (() => void)[] = [];
  readonly workers: Context[] = [];
  /** Lets go of locks and files. */
  readonly releases = new Set<() => void>();
  standstill: { stop: () => void; goOn: () => void } | null = null;
}

interface Event {
  at: number;
  order: number;
  context: Context;
  run: () => void;
}

interface Request {
  context: Context;
  isGranted: boolean;
  grant: () => void;
  fail: (error: DOMException) => void;
}

/** Never frozen, never killed. */
const BROWSER = new Context();

/** The browser. */
export class World {
  now = 0;
  readonly rows = new Rows();
  readonly planted: Planted;
  #state: number;
  #events: Event[] = [];
  #order = 0;
  #ids = 0;
  readonly #locks = new Map<string, Request[]>();
  readonly #channels = new Map<string, Set<SimulatedChannel>>();

  constructor(seed: number, planted: Planted = {}) {
    this.#state = seed + 1;
    this.planted = planted;
  }

  /** A number from 0 up to, but without, 1. */
  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to `to`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.random() * (to - from + 1));
  }

  /** Runs a task later. */
  after(ms: number, context: Context, run: () => void): Event {
    const event = { at: this.now + ms, order: this.#order++, context, run };
    this.#events.push(event);
    return event;
  }

  cancel(event: Event | null): void {
    this.#events = this.#events.filter((each) => each !== event);
  }

  wait(ms: number, context: { readonly isAlive: boolean } = BROWSER): Promise<void> {
    return new Promise((resolve) => void this.after(ms, context as Context, resolve));
  }

  /** Runs tasks until a time, or until `done` says so. */
  async run(until: number, done = () => false): Promise<void> {
    while (!done()) {
      const next = this.#events.reduce<Event | null>(
        (first, each) =>
          first === null || each.at < first.at || (each.at === first.at && each.order < first.order)
            ? each
            : first,
        null,
      );
      if (next === null || next.at > until) {
        this.now = until;
        return;
      }
      this.cancel(next);
      this.now = next.at;
      this.#deliver(next.context, next.run);
      // Everything that follows from the task.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #deliver(context: Context, run: () => void): void {
    if (context.isFrozen) {
      context.backlog.push(run);
    } else if (context.isAlive) {
      run();
    }
  }

  /** Ends a page or a worker at once. What it held is free a little later. */
  kill(context: Context): void {
    if (context.isAlive) {
      context.isAlive = false;
      context.workers.forEach((worker) => this.kill(worker));
      this.after(this.between(0, 60), BROWSER, () => context.releases.forEach((free) => free()));
    }
  }

  /** Freezes a page, with or without an event before. */
  freeze(page: Context, isTold: boolean): void {
    if (isTold) {
      page.standstill?.stop();
    }
    [page, ...page.workers].forEach((each) => (each.isFrozen = true));
  }

  /** Lets a frozen page go on. */
  thaw(page: Context): void {
    for (const each of [page, ...page.workers]) {
      each.isFrozen = false;
      each.backlog.splice(0).forEach((run) => this.after(this.between(0, 3), each, run));
    }
    this.after(0, page, () => page.standstill?.goOn());
  }

  /** A new page. */
  page(): { page: Context; host: TabHost } {
    const page = new Context();
    const host: TabHost = {
      ...this.#medium(page),
      now: () => this.now,
      setTimeout: (work, ms) => this.after(ms, page, work),
      clearTimeout: (timer) => this.cancel(timer as Event | null),
      uuid: () => `${++this.#ids}`,
      random: () => this.random(),
      startWorker: () => this.#startWorker(page),
      onStandstill: (stop, goOn) => {
        page.standstill = { stop, goOn };
        return () => (page.standstill = null);
      },
    };
    return { page, host };
  }

  #medium(context: Context): Medium {
    return {
      locks: this.#locksOf(context),
      channel: (name) => {
        const named = this.#channels.get(name) ?? new Set();
        this.#channels.set(name, named);
        const channel = new SimulatedChannel(this, context, named);
        named.add(channel);
        return channel;
      },
    };
  }

  #locksOf(context: Context): Locks {
    return {
      request: (name, { steal, signal }, hold) =>
        new Promise((resolve, reject) => {
          const answered = (run: () => void): void =>
            void this.after(this.between(0, 8), context, run);
          const request: Request = {
            context,
            isGranted: false,
            grant: () => {
              request.isGranted = true;
              answered(() => {
                void Promise.resolve(hold(null)).then((value) => {
                  this.after(this.between(0, 8), BROWSER, () => this.#release(name, request));
                  resolve(value);
                });
              });
            },
            fail: (error) => answered(() => reject(error)),
          };
          context.releases.add(() => this.#release(name, request));
          signal?.addEventListener('abort', () => {
            if (!request.isGranted) {
              this.#release(name, request);
              reject(new DOMException('aborted', 'AbortError'));
            }
          });
          this.after(this.between(0, 8), BROWSER, () => {
            if (context.isAlive && !signal?.aborted) {
              this.#request(name, request, steal === true && !this.planted.noSteal);
            }
          });
        }),
    };
  }

  #request(name: string, request: Request, isStealing: boolean): void {
    const queue = this.#locks.get(name) ?? [];
    this.#locks.set(name, queue);
    if (isStealing) {
      const held = queue.filter(({ isGranted }) => isGranted);
      held.forEach((each) => {
        queue.splice(queue.indexOf(each), 1);
        each.fail(new DOMException('stolen', 'AbortError'));
      });
      queue.unshift(request);
    } else {
      queue.push(request);
    }
    if (queue[0] === request) {
      request.grant();
    }
  }

  #release(name: string, request: Request): void {
    const queue = this.#locks.get(name) ?? [];
    const at = queue.indexOf(request);
    if (at !== -1) {
      queue.splice(at, 1);
    }
    if (queue[0] !== undefined && !queue[0].isGranted) {
      queue[0].grant();
    }
  }

  /** Starts a leader's worker. */
  #startWorker(page: Context): MessageTransport {
    const worker = new Context();
    worker.isFrozen = page.isFrozen;
    page.workers.push(worker);
    let arrives = this.now;
    const later = (context: Context, run: () => void): void => {
      arrives = Math.max(arrives, this.now + this.between(0, 2));
      this.after(arrives - this.now, context, run);
    };
    const inside: ServerPort = {
      onmessage: null,
      postMessage: (replies: Reply[]) => {
        if (worker.isAlive) {
          later(page, () => worker.isAlive && outside.onmessage?.({ data: replies } as never));
        }
      },
    };
    const outside: ClientPort = {
      onmessage: null,
      onmessageerror: null,
      postMessage: (calls: Call[]) =>
        later(worker, () => inside.onmessage?.({ data: calls } as never)),
    };
    const open = async (request: OpenRequest): Promise<Service> => {
      await this.#openFiles(worker, request.patienceMs ?? 2000);
      const own = this.rows.connection(this, worker) as unknown as Shareable;
      const term = {
        url: request.url,
        term: request.term!,
        durability: 'strict' as const,
        blobs: null,
      };
      return new Leading(own, term, this.#medium(worker)) as unknown as Service;
    };
    serve(inside, new Opening(open as never));
    return new MessageTransport(outside, () => this.kill(worker));
  }

  /** Opens the files, which only one worker can have. */
  async #openFiles(worker: Context, patienceMs: number): Promise<void> {
    const deadline = this.now + patienceMs;
    while (this.rows.holder !== null && !this.planted.sharedFiles) {
      if (this.now >= deadline) {
        throw nacreError('in_use', 'the files are open elsewhere');
      }
      await this.wait(40, worker);
    }
    this.rows.holder = worker;
    const free = (): void => {
      if (this.rows.holder === worker) {
        this.rows.holder = null;
      }
    };
    worker.releases.add(free);
    await this.wait(this.between(1, 300), worker);
  }
}

/** A broadcast channel. Messages of one sender to one receiver arrive in order. */
class SimulatedChannel implements Channel {
  onmessage: Channel['onmessage'] = null;
  onmessageerror: Channel['onmessageerror'] = null;
  readonly #world: World;
  readonly #context: Context;
  readonly #named: Set<SimulatedChannel>;
  readonly #arrives = new Map<SimulatedChannel, number>();

  constructor(world: World, context: Context, named: Set<SimulatedChannel>) {
    this.#world = world;
    this.#context = context;
    this.#named = named;
  }

  postMessage(message: unknown): void {
    const world = this.#world;
    if (!this.#context.isAlive) {
      return;
    }
    if (!this.#named.has(this)) {
      throw new DOMException('the channel is closed', 'InvalidStateError');
    }
    const data: unknown = structuredClone(message);
    for (const other of this.#named) {
      if (other !== this && other.#context.isAlive) {
        const soonest = world.now + world.between(0, 8);
        const at = Math.max(this.#arrives.get(other) ?? 0, soonest);
        this.#arrives.set(other, at);
        world.after(at - world.now, other.#context, () => {
          if (this.#named.has(other)) {
            other.onmessage?.({ data } as MessageEvent);
          }
        });
      }
    }
  }

  close(): void {
    this.#named.delete(this);
  }
}
