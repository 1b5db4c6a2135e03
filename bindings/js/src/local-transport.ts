/** Calls to an engine in this thread: what Node uses. Work happens in the call, the answer comes as a promise. */

import type { Connection } from '../../../worker/shared/connection.js';
import { nacreError } from '../../../worker/shared/errors.js';
import type { Methods, Transport } from './transport.js';

export class LocalTransport implements Transport {
  readonly ahead = false;
  readonly #connection: Connection;
  #ended = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async call<M extends keyof Methods>(
    method: M,
    ...args: Parameters<Methods[M]>
  ): Promise<ReturnType<Methods[M]>> {
    if (this.#ended) {
      throw nacreError('closed', 'the database is closed');
    }
    return this.#connection.call(method, args) as ReturnType<Methods[M]>;
  }

  end(): void {
    this.#ended = true;
  }
}
