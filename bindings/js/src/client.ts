/** What the sessions, statements and streams of one connection share. */

import type { Transport } from './transport.js';
import type { TypeOptions } from './types.js';

/** The parts of a connection that everything running SQL on it uses. */
export interface Client {
  readonly transport: Transport;
  readonly types: TypeOptions;
}
