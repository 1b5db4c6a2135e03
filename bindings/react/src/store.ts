/**
 * A live query as a store: it has a state, and calls its subscribers with the state and with each
 * change of it, as Svelte's stores do. The query runs while there is a subscriber.
 */

import type { Database, Parameters, Row, SqlQuery } from 'nacredb';

/** What is known of a live query. */
export interface LiveState<R = Row> {
  /** The newest rows; empty before the first result. */
  readonly rows: readonly R[];
  /** Whether a result is still to come: before the first one, and after a restart. */
  readonly loading: boolean;
  /** Why the query ended, or `undefined`. The rows are those of the last result then. */
  readonly error: unknown;
}

/** A live query whose state can be read and followed. */
export interface LiveStore<R = Row> {
  /** The newest state; the same object until something changes. */
  getState(): LiveState<R>;
  /**
   * Calls a function with the state, now and whenever it changes, until the function that this call
   * answers is called.
   */
  subscribe(follow: (state: LiveState<R>) => void): () => void;
}

/**
 * Makes a store for a query. Nothing runs before its first subscriber; after its last one, the query
 * ends, and the next one starts it again, also after an error. Without a database (yet) the store
 * stays `loading`.
 */
export function liveStore<R = Row>(db: Database | null | undefined, sql: SqlQuery): LiveStore<R>;
export function liveStore<R = Row>(
  db: Database | null | undefined,
  sql: string | SqlQuery,
  parameters?: Parameters,
): LiveStore<R>;
export function liveStore<R = Row>(
  db: Database | null | undefined,
  sql: string | SqlQuery,
  parameters?: Parameters,
): LiveStore<R> {
  const query = typeof sql === 'string' ? { text: sql, parameters } : sql;
  return new Store<R>(db, query.text, query.parameters as Parameters | undefined);
}

/** The state of a query that has no result yet. */
const NOTHING: LiveState<never> = { rows: [], loading: true, error: undefined };

class Store<R> implements LiveStore<R> {
  readonly #db: Database | null | undefined;
  readonly #text: string;
  readonly #parameters: Parameters | undefined;
  /** Each call of `subscribe`: the same function may subscribe twice. */
  readonly #followers = new Set<{ follow: (state: LiveState<R>) => void }>();
  #state: LiveState<R> = NOTHING;
  /** Ends the running query. */
  #running: AbortController | null = null;

  constructor(db: Database | null | undefined, text: string, parameters: Parameters | undefined) {
    this.#db = db;
    this.#text = text;
    this.#parameters = parameters;
  }

  // Bound, so that the methods can be passed as functions.
  readonly getState = (): LiveState<R> => this.#state;

  readonly subscribe = (follow: (state: LiveState<R>) => void): (() => void) => {
    const follower = { follow };
    this.#followers.add(follower);
    if (this.#followers.size === 1) {
      this.#start();
    }
    follow(this.#state);
    return () => {
      this.#followers.delete(follower);
      // Not at once: a component that is mounted again, as React's StrictMode does, goes on.
      queueMicrotask(() => {
        if (this.#followers.size === 0) {
          this.#running?.abort();
          this.#running = null;
        }
      });
    };
  };

  #start(): void {
    if (this.#running !== null || this.#db === null || this.#db === undefined) {
      return;
    }
    const running = new AbortController();
    this.#running = running;
    this.#state = { ...this.#state, loading: true, error: undefined };
    const onError = (error: unknown): void => {
      if (this.#running === running) {
        this.#running = null;
        this.#change({ rows: this.#state.rows, loading: false, error });
      }
    };
    this.#db.live
      .query<R>(
        this.#text,
        this.#parameters,
        ({ rows }) => {
          if (this.#running === running) {
            this.#change({ rows, loading: false, error: undefined });
          }
        },
        { signal: running.signal, onError },
      )
      .catch(onError);
  }

  #change(state: LiveState<R>): void {
    this.#state = state;
    for (const { follow } of [...this.#followers]) {
      try {
        follow(state);
      } catch (error) {
        // As that of an event's listener: it stops neither the query nor other subscribers.
        setTimeout(() => {
          throw error;
        });
      }
    }
  }
}
