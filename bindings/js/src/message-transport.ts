/**
 * Calls as messages over a port. Calls made in one task travel in one message: a point read costs
 * less than a message, so a hundred of them in flight should not cost a hundred messages.
 */

import { NacreError, nacreError, toErrorData } from '../../../worker/shared/errors.js';
import { unpack, type Packed } from '../../../worker/shared/packed.js';
import {
  MOVED,
  type Answer,
  type Arguments,
  type Call,
  type Method,
  type Reply,
} from '../../../worker/shared/protocol.js';
import type { Transport } from './transport.js';

/**
 * The part of a message port that a client uses: a `Worker` has it, and so does a `MessagePort`.
 */
export interface ClientPort {
  onmessage: ((event: MessageEvent<(Reply | Packed)[]>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  postMessage(calls: Call[]): void;
}

interface PendingCall {
  resolve: (answer: never) => void;
  reject: (error: NacreError | typeof MOVED) => void;
}

/** A transport over a message port. A call that was not run rejects with `MOVED`. */
export class MessageTransport implements Transport {
  readonly ahead = true;
  readonly #port: ClientPort;
  readonly #release: () => void;
  readonly #pending = new Map<number, PendingCall>();
  #queue: Call[] = [];
  #nextId = 1;
  #failure: NacreError | null = null;

  /** Takes over a port. `release` gives it back when the transport has ended. */
  constructor(port: ClientPort, release: () => void) {
    this.#port = port;
    this.#release = release;
    port.onmessage = ({ data }) => this.#receive(data);
    port.onmessageerror = () =>
      this.fail(nacreError('io', "the worker's reply could not be read: connect again"));
  }

  call<M extends Method>(method: M, ...args: Arguments<M>): Promise<Answer<M>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) {
        reject(this.#failure);
        return;
      }
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      if (this.#queue.push({ id, method, args }) === 1) {
        queueMicrotask(() => this.#flush(1));
      }
    });
  }

  /** Sends the queued calls, or waits for another turn while the task keeps making calls. */
  #flush(seen: number): void {
    if (this.#queue.length > seen) {
      const now = this.#queue.length;
      queueMicrotask(() => this.#flush(now));
      return;
    }
    const calls = this.#queue;
    this.#queue = [];
    try {
      this.#port.postMessage(calls);
    } catch (thrown) {
      // Memory has run out, or an option of `connect` cannot be cloned: of parameters and rows,
      // what cannot has been refused before.
      const error = toErrorData(thrown, 'the calls cannot be sent');
      calls.forEach(({ id }) => this.#settle({ id, error }));
    }
  }

  #receive(replies: (Reply | Packed)[]): void {
    if (Array.isArray(replies)) {
      unpack(replies, (reply) => this.#settle(reply));
      return;
    }
    const message =
      'the worker sent something else than answers: it is no worker of this version of nacredb';
    this.fail(nacreError('unsupported', message));
  }

  #settle(reply: Reply): void {
    const call = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('error' in reply) {
      call?.reject(new NacreError(reply.error));
    } else if ('moved' in reply) {
      call?.reject(MOVED);
    } else {
      call?.resolve(reply.result as never);
    }
  }

  /**
   * Fails every pending and every later call, and releases the port. Later failures change nothing.
   */
  fail(error: NacreError): void {
    this.#failure ??= error;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#queue = [];
    pending.forEach(({ reject }) => reject(error));
    this.#release();
  }

  end(): void {
    this.fail(nacreError('closed', 'the database is closed'));
  }
}
