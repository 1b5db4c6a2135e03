/**
 * Copies the parameters of a call. The engine reads them later, when the task's calls are sent
 * together or when earlier calls of the session have finished; the caller may have changed its
 * objects by then.
 */

import { copyValue, hasNoJson } from '../../../worker/shared/copy-value.js';
import { nacreError } from '../../../worker/shared/errors.js';
import type { WireParameters } from '../../../worker/shared/wire.js';
import type { Parameters } from './types.js';

/**
 * Copies parameters. Makes JSON here, so that it is the same with and without a worker; it travels
 * as a String object.
 */
export function copyParameters(parameters: Parameters | null | undefined): WireParameters {
  if (parameters === undefined || parameters === null) {
    return undefined;
  }
  if (Array.isArray(parameters)) {
    return parameters.map((value: unknown, i) => copyValue(value, i + 1));
  }
  if (typeof parameters !== 'object' || hasNoJson(parameters)) {
    throw nacreError('type', 'parameters must be an array or an object');
  }
  return Object.fromEntries(
    entriesOf(parameters).map(([name, value]) => [name, copyValue(value, name)]),
  );
}

function entriesOf(parameters: object): [string, unknown][] {
  try {
    return Object.entries(parameters);
  } catch (error) {
    throw nacreError('type', `the parameters cannot be read: ${String(error)}`, error);
  }
}
