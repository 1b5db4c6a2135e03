/**
 * A transport to a dedicated worker that belongs to it: a worker that fails ends the transport, and
 * the reverse.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import { MessageTransport } from './message-transport.js';

/**
 * Takes over a worker. Ending the transport terminates the worker, which would otherwise keep the
 * files locked.
 */
export function workerTransport(worker: Worker): MessageTransport {
  const transport = new MessageTransport(worker, () => worker.terminate());
  worker.onerror = (event) =>
    // The event of a script that cannot be loaded has no message.
    transport.fail(
      event.message
        ? nacreError('closed', `the worker failed: ${event.message}`)
        : nacreError('io', 'the worker could not be loaded'),
    );
  return transport;
}
