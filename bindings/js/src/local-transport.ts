/**
 * Calls to an engine in the same thread, which is what Node uses. The work is done during the call.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import type {
  Answer,
  Arguments,
  ConnectionMethod,
  Service,
} from '../../../worker/shared/protocol.js';
import type { Transport } from './transport.js';

/** A transport that calls a service directly. */
export class LocalTransport implements Transport {
  readonly ahead = false;
  readonly #service: Service<ConnectionMethod>;
  #ended = false;

  constructor(service: Service<ConnectionMethod>) {
    this.#service = service;
  }

  async call<M extends ConnectionMethod>(method: M, ...args: Arguments<M>): Promise<Answer<M>> {
    if (this.#ended) {
      throw nacreError('closed', 'the database is closed');
    }
    return this.#service.call(method, args);
  }

  end(): void {
    this.#ended = true;
  }
}
