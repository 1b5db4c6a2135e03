/** Functions of the application that SQL can call. */

import { copyValue } from '../../../worker/shared/copy-value.js';
import { nacreError } from '../../../worker/shared/errors.js';
import type { AggregateSteps, FunctionSource, WireFunction } from '../../../worker/shared/wire.js';
import type { Client } from './client.js';
import type { Parameter } from './types.js';

/**
 * Types and behaviour of a function that `db.createFunction` or `db.createAggregate` creates.
 *
 * @example
 * ```ts
 * const options = { parameters: ['text', 'int'], returns: 'text' } as const;
 * await db.createFunction('first_of', options, (text: string, n: number) => text.slice(0, n));
 * console.log((await db.query("select first_of('pearl', 2) as s")).rows); // [ { s: 'pe' } ]
 * ```
 */
export interface FunctionOptions {
  /** SQL types of the arguments, which are cast to them. */
  parameters: readonly string[];
  /** SQL type of the result, which is cast to it. */
  returns: string;
  /** Whether the result may differ between calls with the same arguments; false by default. */
  volatile?: boolean;
  /**
   * `skip` (default): the function is not called where an argument is null; its result is null there,
   * and an aggregate leaves out the row. `pass`: the function is called with null.
   */
  nulls?: 'skip' | 'pass';
}

/**
 * `FunctionOptions` of an aggregate.
 *
 * @example
 * ```ts
 * const options = { parameters: ['int'], returns: 'int', overNothing: 0 };
 * const steps = { start: () => 0, step: (n: number) => n + 1, finish: (n: number) => n };
 * await db.createAggregate('how_many', options, steps);
 * console.log((await db.query('select how_many(ms) as n from visit where id > 9')).rows); // [ { n: 0 } ]
 * ```
 */
export interface AggregateOptions extends FunctionOptions {
  /** The value where no row counts; null by default. */
  overNothing?: Parameter;
}

/**
 * The parts of an aggregate: the state of a group without rows, the state after one more row, and
 * the value of a state. `finish` may be called several times, with more rows in between.
 *
 * @example
 * ```ts
 * const product = {
 *   start: () => 1,
 *   step: (state: number, x: number) => state * x,
 *   finish: (state: number) => state,
 * };
 * await db.createAggregate('product_of', { parameters: ['double'], returns: 'double' }, product);
 * ```
 */
export interface AggregateFunction<State = never, Values extends unknown[] = never[]> {
  /** Answers the state of a group without rows. */
  start: () => State;
  /** Answers the state after one more row. */
  step: (state: State, ...values: Values) => State;
  /** Answers the value of a state. */
  finish: (state: State) => unknown;
}

/**
 * Where the engine's worker finds a function: the URL of a module, and the name under which it exports
 * the function, or the parts of the aggregate.
 *
 * @example
 * ```ts
 * const source = 'export const twice = (n) => 2 * n;';
 * const module = `data:text/javascript,${encodeURIComponent(source)}`;
 * const options = { parameters: ['int'], returns: 'int' };
 * await db.createFunction('twice', options, { module, name: 'twice' });
 * console.log((await db.query('select twice(21) as n')).rows); // [ { n: 42 } ]
 * ```
 */
export interface ModuleExport {
  /** URL of the module. */
  module: string | URL;
  /** Name of the export. */
  name: string;
}

/** Creates a function in the engine. */
export async function createFunction(
  { transport, types }: Client,
  kind: WireFunction['kind'],
  name: string,
  options: AggregateOptions,
  source: ((...values: never[]) => unknown) | AggregateSteps | ModuleExport,
): Promise<void> {
  if (typeof name !== 'string') {
    throw nacreError('type', 'the name of a function must be a string');
  }
  const { parameters, returns, volatile, nulls = 'skip', overNothing } = options;
  if (!Array.isArray(parameters) || ![...parameters, returns].every(isText)) {
    throw nacreError('type', `${name}: parameters and returns are names of SQL types`);
  }
  if (nulls !== 'skip' && nulls !== 'pass') {
    throw nacreError('type', `${name}: nulls must be 'skip' or 'pass', not '${String(nulls)}'`);
  }
  await transport.call('createFunction', {
    name,
    kind,
    parameters,
    returns,
    isVolatile: volatile === true,
    takesNulls: nulls === 'pass',
    overNothing: copyValue(overNothing, `overNothing of ${name}`),
    types,
    source: sourceOf(name, source, transport.ahead),
  });
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** Functions cannot be sent to an engine that works in another thread. */
function sourceOf(
  name: string,
  source: ((...values: never[]) => unknown) | AggregateSteps | ModuleExport,
  isElsewhere: boolean,
): FunctionSource {
  if (typeof source === 'object' && source !== null && 'module' in source) {
    return { module: String(source.module), name: String(source.name) };
  }
  if (isElsewhere) {
    throw nacreError(
      'unsupported',
      `${name} is a function of this thread, and the engine works in another one: pass { module, name } of a module that exports it, or use connectInThread in a worker`,
    );
  }
  return source;
}
