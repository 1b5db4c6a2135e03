/**
 * The version of the package. A page and its worker must be of the same one, because the protocol
 * between them may change with each.
 */

import { nacreError } from './errors.js';

/** As in the package's `package.json`, which a test compares. */
export const VERSION = '0.1.0';

/** Throws `unsupported` if the page is of another version than this worker. */
export function mustBeThisVersion(version: string | undefined): void {
  if (version !== VERSION) {
    throw nacreError(
      'unsupported',
      `the page has version ${version ?? 'unknown'} of nacredb, and its worker ${VERSION}: deploy the files of one version together, then reload; caches may have kept one of them`,
    );
  }
}
