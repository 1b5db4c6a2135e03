/**
 * Calls through a worker's messages. Calls made in one task travel in one message: a point read is cheaper
 * than a message, so a hundred of them in flight should not cost a hundred messages.
 */

import {
  NacreError,
  nacreError,
  toErrorData,
  type ErrorData,
} from '../../../worker/shared/errors.js';
import type { Call, OpenRequest, Reply } from '../../../worker/shared/protocol.js';
import type { Methods, Transport } from './transport.js';

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: NacreError) => void;
}

export class WorkerTransport implements Transport {
  readonly ahead = true;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #queue: Call[] = [];
  #nextId = 1;
  #ended: NacreError | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = (event: MessageEvent<Reply[]>) => this.#receive(event.data);
    worker.onmessageerror = () =>
      this.#stop(nacreError('io', 'an answer of the worker could not be read: connect again'));
    worker.onerror = (event) => {
      // A script that cannot be loaded has no message and no place.
      const text = event.message
        ? `the worker failed: ${event.message}`
        : 'the worker could not be loaded';
      this.#stop(nacreError(event.message ? 'closed' : 'io', text));
    };
  }

  open(request: OpenRequest): Promise<void> {
    return this.#call('open', [request]);
  }

  call<M extends keyof Methods>(
    method: M,
    ...args: Parameters<Methods[M]>
  ): Promise<ReturnType<Methods[M]>> {
    return this.#call(method, args);
  }

  #call<T>(method: string, args: unknown[]): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== null) {
        reject(this.#ended);
        return;
      }
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      if (this.#queue.push({ id, method, args }) === 1) {
        queueMicrotask(() => this.#flush(1));
      }
    });
  }

  /** Waits as long as the task goes on making calls. */
  #flush(seen: number): void {
    if (this.#queue.length > seen) {
      const now = this.#queue.length;
      queueMicrotask(() => this.#flush(now));
      return;
    }
    const calls = this.#queue;
    this.#queue = [];
    try {
      this.#worker.postMessage(calls);
    } catch (error) {
      // They are more than memory can hold twice: what cannot be cloned was refused before.
      const failure = toErrorData(error, 'the calls cannot be sent');
      calls.forEach(({ id }) => this.#settle(id, failure));
    }
  }

  #receive(replies: Reply[]): void {
    for (const reply of replies) {
      if ('error' in reply) {
        this.#settle(reply.id, reply.error);
      } else {
        const waiting = this.#waiting.get(reply.id);
        this.#waiting.delete(reply.id);
        waiting?.resolve(reply.result as never);
      }
    }
  }

  #settle(id: number, error: ErrorData): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.reject(new NacreError(error));
  }

  #fail(error: NacreError): void {
    this.#ended ??= error;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#queue = [];
    waiting.forEach(({ reject }) => reject(error));
  }

  /** Also ends the worker: one that nobody can call any more would keep the database's files from others. */
  #stop(error: NacreError): void {
    this.#fail(error);
    this.#worker.terminate();
  }

  end(): void {
    this.#stop(nacreError('closed', 'the database is closed'));
  }
}
