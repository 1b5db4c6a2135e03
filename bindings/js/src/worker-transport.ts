/**
 * A transport to a dedicated worker that belongs to it: a worker that fails ends the transport, and
 * the reverse.
 */

import { nacreError, type NacreError } from '../../../worker/shared/errors.js';
import type { Answer, Arguments, Method } from '../../../worker/shared/protocol.js';
import type { OpenRequest } from '../../../worker/shared/wire.js';
import { MessageTransport } from './message-transport.js';

/** Browsers do not tell a page which of these it is, except in the console. */
const WHY_NOT_LOADED =
  'it is missing (set workerUrl), is not served as JavaScript, or a policy of the page forbids it ' +
  '(worker-src of the Content-Security-Policy must allow it, and a page with a ' +
  'Cross-Origin-Embedder-Policy needs a worker served with the same one)';

/**
 * How long a worker's script may take to load and to say that it runs. Opening the database may then
 * take any time.
 */
const START_MS = 30_000;

/**
 * Takes over a worker. Ending the transport terminates the worker, which would otherwise keep the
 * files locked.
 */
export function workerTransport(worker: Worker): MessageTransport {
  const transport: WorkerTransport = new WorkerTransport(worker, () => {
    clearTimeout(starting);
    worker.terminate();
  });
  const starting = setTimeout(() => transport.fail(silent()), START_MS);
  worker.addEventListener('message', () => clearTimeout(starting), { once: true });
  worker.onerror = (event) =>
    // The event of a script that cannot be loaded has no message.
    transport.fail(
      event.message
        ? nacreError('closed', `the worker failed: ${event.message}; connect again`)
        : nacreError('io', `the worker's script could not be loaded: ${WHY_NOT_LOADED}`),
    );
  return transport;
}

function silent(): NacreError {
  return nacreError(
    'unavailable',
    `the worker has not answered in ${START_MS / 1000} s: its script takes long to load, or is not that of nacredb (see workerUrl)`,
  );
}

/**
 * Notices that its worker has ended, of which no event tells: an open database's worker holds a Web
 * Lock, which the browser gives to the page then.
 */
class WorkerTransport extends MessageTransport {
  override call<M extends Method>(method: M, ...args: Arguments<M>): Promise<Answer<M>> {
    const { locks } = globalThis.navigator ?? {};
    // Comparing `method` does not narrow the types that depend on it.
    return method === 'open' && locks !== undefined
      ? (this.#open(locks, ...(args as Arguments<'open'>)) as Promise<Answer<M>>)
      : super.call(method, ...args);
  }

  async #open(locks: LockManager, request: OpenRequest): Promise<void> {
    const lifeLock = `nacredb-worker-${crypto.randomUUID()}`;
    await super.call('open', { ...request, lifeLock });
    // Where there are no locks, the database works all the same.
    this.#watch(locks, lifeLock).catch(() => {});
  }

  async #watch(locks: LockManager, lifeLock: string): Promise<void> {
    // A worker of a `data:` URL is of another origin, whose locks are not those of the page.
    const isHeld = await locks.request(lifeLock, { ifAvailable: true }, (lock) => lock === null);
    if (isHeld) {
      await locks.request(lifeLock, () => {
        const message = 'the worker has ended; committed changes are safe, connect again';
        this.fail(nacreError('closed', message));
      });
    }
  }
}
