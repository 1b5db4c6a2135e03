import { effect, effectScope, onScopeDispose, shallowRef } from '@vue/reactivity';
import { sql, type Database, type Row } from 'nacredb';
import { liveStore, type LiveState, type LiveStore } from 'nacredb-react/store';
import { derived, get } from 'svelte/store';
import { expect, expectTypeOf, test, vi } from 'vitest';
import { eventually, settled, withNotes } from './testing.js';

interface Note {
  id: number;
  body: string;
}

const ALL = 'select * from note order by id';

/** Counts how many live queries were begun on a database. */
function countingQueries(db: Database) {
  return vi.spyOn(db.live, 'query');
}

test('gives each subscriber the state at once, and each change of it', async () => {
  const db = await withNotes('a');
  const store = liveStore<Note>(db, ALL);
  const states: LiveState<Note>[] = [];
  const end = store.subscribe((state) => void states.push(state));
  expect(states).toEqual([{ rows: [], loading: true, error: undefined }]);
  await eventually(() => states.at(-1)?.rows, [{ id: 1, body: 'a' }]);
  await db.query("insert into note values (2, 'b')");
  await eventually(() => states.at(-1)?.rows.length, 2);
  expect(states).toHaveLength(3);
  expect(store.getState()).toBe(states[2]);
  end();
  await settled();
  await db.query("insert into note values (3, 'c')");
  await settled();
  expect(states).toHaveLength(3);
});

test('runs one query for all subscribers, and none without', async () => {
  const db = await withNotes('a');
  const queries = countingQueries(db);
  const store = liveStore(db, sql`select * from note where id = ${1}`);
  await settled();
  expect(queries).toHaveBeenCalledTimes(0);
  const [first, second]: unknown[][] = [[], []];
  const ends = [
    store.subscribe(({ rows }) => void first!.push(rows.length)),
    store.subscribe(({ rows }) => void second!.push(rows.length)),
  ];
  await eventually(
    () => [first, second],
    [
      [0, 1],
      [0, 1],
    ],
  );
  expect(queries).toHaveBeenCalledTimes(1);
  ends[0]!();
  ends[0]!();
  await db.exec("update note set body = 'A'");
  await eventually(() => second, [0, 1, 1]);
  expect(first).toEqual([0, 1]);
  ends[1]!();
  await settled();
  const states: LiveState[] = [];
  store.subscribe((state) => void states.push(state))();
  store.subscribe((state) => void states.push(state));
  expect(states[0]).toMatchObject({ loading: true, rows: [{ body: 'A' }] });
  await settled();
  expect(queries).toHaveBeenCalledTimes(2);
  expect(states.at(-1)).toMatchObject({ loading: false, rows: [{ body: 'A' }] });
});

test('has the error of a query that fails, and starts again with the next subscriber', async () => {
  const db = await withNotes('a');
  const store = liveStore(db, 'select * from later');
  const end = store.subscribe(() => {});
  await eventually(() => store.getState().loading, false);
  expect(store.getState()).toMatchObject({ rows: [], error: { kind: 'not_found' } });
  end();
  await db.exec('create table later (id int primary key)');
  await settled();
  store.subscribe(() => {});
  await eventually(() => store.getState(), { rows: [], loading: false, error: undefined });
  await db.exec('drop table later');
  await eventually(
    () => (store.getState().error as { kind: string } | undefined)?.kind,
    'not_found',
  );
});

test('goes on after an error of a subscriber', async () => {
  const db = await withNotes('a');
  const uncaught: unknown[] = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => void uncaught.push(error.message));
  try {
    const store = liveStore(db, ALL);
    const counts: number[] = [];
    store.subscribe(({ loading }) => {
      if (!loading) {
        throw new Error('mine');
      }
    });
    store.subscribe(({ rows }) => void counts.push(rows.length));
    await eventually(() => counts, [0, 1]);
    await db.query("insert into note values (2, 'b')");
    await eventually(() => counts, [0, 1, 2]);
    await eventually(() => uncaught, ['mine', 'mine']);
    expect(store.getState().error).toBeUndefined();
  } finally {
    process.removeAllListeners('uncaughtException');
    listeners.forEach((listener) => process.on('uncaughtException', listener));
  }
});

test('waits for a database that is not there yet', () => {
  const store = liveStore(undefined, ALL);
  const states: LiveState[] = [];
  store.subscribe((state) => void states.push(state))();
  expect(states).toEqual([{ rows: [], loading: true, error: undefined }]);
});

test('is a store of Svelte', async () => {
  const db = await withNotes('a', 'b');
  const store = liveStore<Note>(db, ALL);
  const bodies = derived(store, ({ rows }) => rows.map(({ body }) => body).join());
  expect(get(store).loading).toBe(true);
  const seen: string[] = [];
  const end = bodies.subscribe((text) => void seen.push(text));
  await eventually(() => seen, ['', 'a,b']);
  await db.exec("insert into note values (3, 'c')");
  await eventually(() => seen.at(-1), 'a,b,c');
  end();
});

test('works in Vue by the lines of the README', async () => {
  function fromStore<R>(store: LiveStore<R>) {
    const state = shallowRef(store.getState());
    onScopeDispose(store.subscribe((next) => (state.value = next)));
    return state;
  }
  const db = await withNotes('a');
  const seen: number[] = [];
  const scope = effectScope();
  scope.run(() => {
    const notes = fromStore(liveStore<Note>(db, ALL));
    effect(() => void seen.push(notes.value.rows.length));
  });
  await eventually(() => seen, [0, 1]);
  await db.exec("insert into note values (2, 'b')");
  await eventually(() => seen, [0, 1, 2]);
  scope.stop();
  await settled();
  await db.exec("insert into note values (3, 'c')");
  await settled();
  expect(seen).toEqual([0, 1, 2]);
});

test('states have the type of the rows', async () => {
  const db = await withNotes();
  expectTypeOf(liveStore<Note>(db, ALL).getState().rows).toEqualTypeOf<readonly Note[]>();
  expectTypeOf(liveStore(db, ALL)).toEqualTypeOf<LiveStore<Row>>();
  // @ts-expect-error A query is a text, or made by the tag `sql`.
  expect(() => liveStore(db, 7)).not.toThrow();
});
