/**
 * Functions of the application, in JavaScript. The engine calls them for whole vectors; here they
 * are called row by row.
 */

import { columnReader } from './columns.js';
import { copyValue } from './copy-value.js';
import type { Database } from './engine.js';
import { nacreError } from './errors.js';
import type { Awaitable } from './protocol.js';
import type { AggregateSteps, WireColumn, WireField, WireFunction, WireTypes } from './wire.js';

/** What the engine calls for vectors of `rows` rows. */
type ScalarCall = (columns: WireColumn[], rows: number) => unknown[];

/** The states of all groups of a query. */
export interface GroupStates {
  /** Makes room for this number of groups. */
  resize(groups: number): void;
  /** Adds rows to the groups with these numbers. */
  update(columns: WireColumn[], groups: Uint32Array): void;
  /** Answers the values of groups. */
  finish(from: number, to: number): unknown[];
}

/** The functions of one connection. */
export class Functions {
  readonly #database: Database;
  #depth = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Whether one is being called. */
  get isRunning(): boolean {
    return this.#depth > 0;
  }

  /** Creates a function, once its module has been loaded if it is in one. */
  create(definition: WireFunction): Awaitable<void> {
    const { source } = definition;
    return 'module' in source
      ? exported(source).then((found) => this.#create(definition, found))
      : this.#create(definition, source);
  }

  #create(definition: WireFunction, source: unknown): void {
    const { name, kind, types } = definition;
    if (kind === 'scalar') {
      const compute = mustBeFunction(name, source);
      this.#database.createFunction(definition, (fields: WireField[]) =>
        this.#scalar(name, types, compute, fields),
      );
    } else {
      const steps = mustBeSteps(name, source);
      this.#database.createAggregate(definition, (fields: WireField[]) =>
        this.#aggregate(name, types, steps, fields),
      );
    }
  }

  #scalar(
    name: string,
    types: WireTypes,
    compute: (...values: unknown[]) => unknown,
    fields: WireField[],
  ): ScalarCall {
    return (columns, rows) =>
      this.#within(() => {
        const rowOf = rowReader(fields, columns, types);
        const values: unknown[] = [];
        for (let row = 0; row < rows; row++) {
          values.push(result(name, compute(...rowOf(row))));
        }
        return values;
      });
  }

  #aggregate(
    name: string,
    types: WireTypes,
    { start, step, finish }: AggregateSteps,
    fields: WireField[],
  ): () => GroupStates {
    const next = step as (state: unknown, ...values: unknown[]) => unknown;
    const valueOf = finish as (state: unknown) => unknown;
    return () => {
      const states: unknown[] = [];
      return {
        resize: (groups) =>
          this.#within(() => {
            while (states.length < groups) {
              states.push(start());
            }
          }),
        update: (columns, groups) =>
          this.#within(() => {
            const rowOf = rowReader(fields, columns, types);
            groups.forEach((group, row) => {
              states[group] = next(states[group], ...rowOf(row));
            });
          }),
        finish: (from, to) =>
          this.#within(() => states.slice(from, to).map((state) => result(name, valueOf(state)))),
      };
    };
  }

  #within<T>(work: () => T): T {
    this.#depth++;
    try {
      return work();
    } finally {
      this.#depth--;
    }
  }
}

function rowReader(
  fields: readonly WireField[],
  columns: readonly WireColumn[],
  types: WireTypes,
): (row: number) => unknown[] {
  const readers = fields.map((field, i) => columnReader(field, columns[i]!, types));
  return (row) => readers.map((read) => read(row));
}

function result(name: string, value: unknown): unknown {
  if (value instanceof Promise) {
    value.catch(() => {});
    throw nacreError('type', `function ${name} answered a promise: it must not be async`);
  }
  return copyValue(value, `the result of ${name}`);
}

async function exported({ module, name }: { module: string; name: string }): Promise<unknown> {
  let found: Record<string, unknown>;
  try {
    found = (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as typeof found;
  } catch (error) {
    throw nacreError('io', `the module ${module} did not load: ${String(error)}`, error);
  }
  if (!Object.hasOwn(found, name)) {
    throw nacreError('not_found', `the module ${module} does not export '${name}'`);
  }
  return found[name];
}

function mustBeFunction(name: string, source: unknown): (...values: unknown[]) => unknown {
  if (typeof source !== 'function') {
    throw nacreError('type', `${name} must be a function, not ${typeof source}`);
  }
  return source as (...values: unknown[]) => unknown;
}

function mustBeSteps(name: string, source: unknown): AggregateSteps {
  const steps = source as Partial<AggregateSteps> | null | undefined;
  for (const part of ['start', 'step', 'finish'] as const) {
    if (typeof steps?.[part] !== 'function') {
      throw nacreError('type', `${name} needs a function '${part}'`);
    }
  }
  return steps as AggregateSteps;
}
