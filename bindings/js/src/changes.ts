/** The changes of a table, one batch after the other. */

/// <reference lib="esnext.disposable" preserve="true" />

import { nacreError } from '../../../worker/shared/errors.js';
import type { WireResult } from '../../../worker/shared/wire.js';
import { Aborting } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';
import { QueryResult } from './result.js';
import type { Row } from './types.js';

/** The rows of a table that have changed, by key. Of a row that changed several times, the last. */
export interface Changes<R = Row> {
  /** Rows of keys that were not there. */
  inserted: R[];
  /** As they are now. */
  updated: R[];
  /** As they were. */
  deleted: R[];
}

type What = 'insert' | 'update' | 'delete';

/**
 * The changes of a table, made by `db.live.changes`. Reading the next batch says that the last one has
 * been dealt with.
 */
export class LiveChanges<R = Row> implements AsyncIterableIterator<Changes<R>> {
  readonly #client: Client;
  readonly #live: number;
  readonly #aborting: Aborting;
  readonly #forget: () => void;
  #ended = false;

  private constructor(client: Client, live: number, aborting: Aborting) {
    this.#client = client;
    this.#live = live;
    this.#aborting = aborting;
    this.#forget = aborting.on(() => void this.unsubscribe());
  }

  /** @internal */
  static async begin<R>(
    client: Client,
    live: number,
    table: string,
    options: CallOptions,
  ): Promise<LiveChanges<R>> {
    const aborting = new Aborting(options.signal, 'the changes were cancelled');
    aborting.check('the call was cancelled before it started');
    const changes = new LiveChanges<R>(client, live, aborting);
    try {
      await aborting.or(client.transport.call('changes', live, table));
      return changes;
    } catch (error) {
      await changes.unsubscribe();
      throw error;
    }
  }

  /**
   * Answers the next changes, once there are any.
   *
   * @example
   * ```ts
   * const changes = await db.live.changes('visit');
   * await db.exec('update visit set ms = ms + 1 where id = 3');
   * const { value } = await changes.next();
   * console.log(value?.updated); // [ { id: 3n, page: 'home', ms: 96 } ]
   * await changes.unsubscribe();
   * ```
   */
  async next(): Promise<IteratorResult<Changes<R>, undefined>> {
    try {
      while (!this.#ended) {
        const next = this.#client.transport.call('nextLive', this.#live);
        const changes = this.#changes(await this.#aborting.or(next));
        if (changes !== null && !this.#ended) {
          return { done: false, value: changes };
        }
      }
    } catch (error) {
      if (!this.#ended || this.#aborting.aborted) {
        await this.unsubscribe();
        throw error;
      }
    }
    return { done: true, value: undefined };
  }

  #changes(wire: WireResult): Changes<R> | null {
    const result = new QueryResult(wire, this.#client.types);
    const lists = { insert: [] as R[], update: [] as R[], delete: [] as R[] };
    const [, ...names] = result.columns.map(({ name }) => name);
    for (let row = 0; row < result.rowCount; row++) {
      const [what, ...values] = result.values(row);
      const entries = names.map((name, at) => [name, values[at]]);
      lists[what as What].push(Object.fromEntries(entries) as R);
    }
    const { insert: inserted, update: updated, delete: deleted } = lists;
    return result.rowCount === 0 ? null : { inserted, updated, deleted };
  }

  /**
   * Ends the changes. Ending them twice, or after their database, does nothing.
   *
   * @example
   * ```ts
   * const changes = await db.live.changes('visit');
   * await changes.unsubscribe();
   * console.log(await changes.next()); // { done: true, value: undefined }
   * ```
   */
  async unsubscribe(): Promise<void> {
    this.#forget();
    if (!this.#ended) {
      this.#ended = true;
      // If the database is closed, they have ended.
      await this.#client.transport.call('endLive', this.#live).catch(() => {});
    }
  }

  /**
   * Ends the changes when a loop over them is left.
   *
   * @example
   * ```ts
   * const changes = await db.live.changes('visit');
   * await db.exec('delete from visit where id = 1');
   * for await (const { deleted } of changes) {
   *   console.log(deleted); // [ { id: 1n, page: 'home', ms: 120 } ]
   *   break;
   * }
   * ```
   */
  async return(): Promise<IteratorResult<Changes<R>, undefined>> {
    await this.unsubscribe();
    return { done: true, value: undefined };
  }

  /**
   * The changes themselves.
   *
   * @example
   * ```ts
   * const changes = await db.live.changes('visit');
   * console.log(changes[Symbol.asyncIterator]() === changes); // true
   * await changes.unsubscribe();
   * ```
   */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Ends the changes at the end of an `await using` block.
   *
   * @example
   * ```ts
   * await using changes = await db.live.changes('visit');
   * await db.exec("insert into visit values (4, 'docs', 70)");
   * const { value } = await changes.next();
   * console.log(value?.inserted); // [ { id: 4n, page: 'docs', ms: 70 } ]
   * ```
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.unsubscribe();
  }
}

/** Checks the name of a table. */
export function mustBeTable(table: unknown): asserts table is string {
  if (typeof table !== 'string') {
    throw nacreError('type', 'the name of a table must be a string');
  }
}
