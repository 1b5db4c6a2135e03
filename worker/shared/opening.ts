/**
 * A database that its first call opens: what stands behind a worker's port. Calls that arrive
 * meanwhile wait.
 */

import { nacreError } from './errors.js';
import type {
  Answer,
  Arguments,
  Awaitable,
  ConnectionMethod,
  Method,
  Service,
} from './protocol.js';
import type { OpenRequest } from './wire.js';

/** Opens a database for its first call, `open`, and passes every later call to it. */
export class Opening implements Service {
  readonly #open: (request: OpenRequest) => Promise<Service<ConnectionMethod>>;
  #opening: Promise<Service<ConnectionMethod>> | null = null;
  #opened: Service<ConnectionMethod> | null = null;

  constructor(open: (request: OpenRequest) => Promise<Service<ConnectionMethod>>) {
    this.#open = open;
  }

  call<M extends Method>(method: M, args: Arguments<M>): Awaitable<Answer<M>> {
    // Comparing `method` does not narrow the types that depend on it: `args` and the answer belong
    // to `method`.
    if (method === 'open') {
      const [request] = args as Arguments<'open'>;
      return this.#begin(request) as Promise<Answer<M>>;
    }
    return this.#pass(method as never, args as never);
  }

  async #begin(request: OpenRequest): Promise<void> {
    this.#opening ??= this.#open(request);
    this.#opened = await this.#opening;
  }

  #pass<M extends ConnectionMethod>(method: M, args: Arguments<M>): Awaitable<Answer<M>> {
    if (this.#opened !== null) {
      return this.#opened.call(method, args);
    }
    if (this.#opening === null) {
      throw nacreError('closed', 'the database is not open');
    }
    return this.#opening.then((opened) => opened.call(method, args));
  }
}
