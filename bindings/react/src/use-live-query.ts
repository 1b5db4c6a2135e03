/** The hook: a component's live query. */

import type { Database, Parameters, Row, SqlQuery } from 'nacredb';
import { useState, useSyncExternalStore } from 'react';
import { isSame } from './same.js';
import { liveStore, type LiveState, type LiveStore } from './store.js';

/** Options of `useLiveQuery`. */
export interface LiveQueryOptions {
  /**
   * Keeps the rows of the query before, while another query, or the same with other parameters, is
   * `loading`.
   * @default false
   */
  keepRows?: boolean;
}

/** A query of a component, and its store. */
interface Live<R> {
  db: Database | null | undefined;
  text: string;
  parameters: unknown;
  store: LiveStore<R>;
  /** The rows of the query before, if there was one. */
  before: readonly R[];
}

/**
 * Runs a query, and again after each commit that changed its tables; the component is rendered with
 * each result. The query ends with the component, and is another one when the database, the text or
 * a parameter changes. Parameters are compared by value, so an array may be written in place.
 */
export function useLiveQuery<R = Row>(
  db: Database | null | undefined,
  sql: SqlQuery,
  options?: LiveQueryOptions,
): LiveState<R>;
export function useLiveQuery<R = Row>(
  db: Database | null | undefined,
  sql: string,
  parameters?: Parameters,
  options?: LiveQueryOptions,
): LiveState<R>;
export function useLiveQuery<R>(
  db: Database | null | undefined,
  sql: string | SqlQuery,
  ...rest: unknown[]
): LiveState<R> {
  const tagged = typeof sql !== 'string';
  const [parameters, options] = tagged ? [sql.parameters, rest[0]] : rest;
  const text = tagged ? sql.text : sql;
  const [kept, setLive] = useState<Live<R>>(() => open(db, text, parameters, []));
  let live = kept;
  if (live.db !== db || live.text !== text || !isSame(live.parameters, parameters)) {
    const { rows, loading } = live.store.getState();
    live = open(db, text, parameters, loading && rows.length === 0 ? live.before : rows);
    // Renders again at once, before any child.
    setLive(live);
  }
  const { subscribe, getState } = live.store;
  const state = useSyncExternalStore(subscribe, getState, getState);
  const { keepRows = false } = (options ?? {}) as LiveQueryOptions;
  return keepRows && state.loading && state.rows.length === 0
    ? { ...state, rows: live.before }
    : state;
}

function open<R>(
  db: Database | null | undefined,
  text: string,
  parameters: unknown,
  before: readonly R[],
): Live<R> {
  const store = liveStore<R>(db, text, parameters as Parameters | undefined);
  return { db, text, parameters, store, before };
}
