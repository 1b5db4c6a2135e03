/** `connectInThread` in browsers: loaded only by pages' workers that run the engine themselves. */

import { nacreError } from '../../../worker/shared/errors.js';
import { open } from '../../../worker/browser/open.js';
import { blobsOption, typeOptions, type ConnectOptions } from './options.js';
import { openRequest } from './request.js';
import type { AnySchema } from './schema.js';
import { ThreadDatabase } from './thread-database.js';

/** Opens a database whose engine runs in this dedicated worker. */
export async function connectInThread<S extends object = AnySchema>(
  url: string,
  options: ConnectOptions = {},
): Promise<ThreadDatabase<S>> {
  if (typeof document !== 'undefined') {
    throw nacreError(
      'unsupported',
      'connectInThread runs in dedicated workers, which may block: use connect in a page',
    );
  }
  const types = typeOptions(options);
  const blobs = blobsOption(url, options);
  const connection = await open(openRequest(url, options, blobs), blobs.ask);
  return new ThreadDatabase<S>(connection, types);
}
