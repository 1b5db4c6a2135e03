/** The hook, in React DOM over a document of happy-dom. */

import { Window } from 'happy-dom';
import { connect, sql, type Database } from 'nacredb';
import { useLiveQuery, type LiveState } from 'nacredb-react';
import { createElement, StrictMode, type ReactNode } from 'react';
import type { Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeAll, expect, expectTypeOf, test, vi } from 'vitest';
import { eventually, settled, withNotes } from './testing.js';

interface Note {
  id: number;
  body: string;
}

const window = new Window();
let createRoot: (container: Element) => Root;
const roots: Root[] = [];

beforeAll(async () => {
  // React DOM looks for them when it is imported.
  Object.assign(globalThis, { window, document: window.document });
  // Node has a navigator since version 21.
  globalThis.navigator ??= window.navigator as unknown as Navigator;
  ({ createRoot } = await import('react-dom/client'));
});

afterEach(() => roots.splice(0).forEach((root) => root.unmount()));

/** Renders into an element of its own, and answers how to do that again and what is seen. */
function rendered(node: ReactNode) {
  const element = window.document.createElement('div') as unknown as Element;
  const root = createRoot(element);
  roots.push(root);
  root.render(node);
  return { root, text: () => element.textContent, render: (next: ReactNode) => root.render(next) };
}

interface NotesProps {
  db: Database | undefined;
  below: number;
  keepRows?: boolean;
  onState?: (state: LiveState<Note>) => void;
}

function Notes({ db, below, keepRows, onState }: NotesProps): ReactNode {
  const state = useLiveQuery<Note>(db, 'select * from note where id < ? order by id', [below], {
    keepRows,
  });
  onState?.(state);
  const { rows, loading, error } = state;
  const bodies = rows.map(({ body }) => body).join();
  const failed = error === undefined ? '' : ` failed: ${(error as { kind: string }).kind}`;
  return `${loading ? 'loading ' : ''}${bodies}${failed}`;
}

test('renders the rows, and again after a commit', async () => {
  const db = await withNotes('a', 'b');
  const page = rendered(createElement(Notes, { db, below: 9 }));
  await eventually(page.text, 'a,b');
  await db.query("insert into note values (3, 'c')");
  await eventually(page.text, 'a,b,c');
});

test('is loading first, and without a database', async () => {
  const db = await withNotes('a');
  const states: LiveState<Note>[] = [];
  const onState = (state: LiveState<Note>) => void states.push(state);
  const page = rendered(createElement(Notes, { db: undefined, below: 9, onState }));
  await eventually(page.text, 'loading ');
  page.render(createElement(Notes, { db, below: 9, onState }));
  await eventually(page.text, 'a');
  expect(states[0]).toEqual({ rows: [], loading: true, error: undefined });
  expect(states.at(-1)).toEqual({ rows: [{ id: 1, body: 'a' }], loading: false, error: undefined });
});

test('follows changing parameters, and renders of equal ones start nothing', async () => {
  const db = await withNotes('a', 'b', 'c');
  const queries = vi.spyOn(db.live, 'query');
  const page = rendered(createElement(Notes, { db, below: 3 }));
  await eventually(page.text, 'a,b');
  page.render(createElement(Notes, { db, below: 3 }));
  page.render(createElement(Notes, { db, below: 3 }));
  await settled();
  expect(queries).toHaveBeenCalledTimes(1);
  page.render(createElement(Notes, { db, below: 2 }));
  await eventually(page.text, 'a');
  expect(queries).toHaveBeenCalledTimes(2);
  await db.query("update note set body = 'A' where id = 1");
  await eventually(page.text, 'A');
  expect(page.text()).toBe('A');
});

test('keeps the rows of the query before, by option', async () => {
  const db = await withNotes('a', 'b', 'c');
  const seen = new Set<string>();
  const onState = ({ rows, loading }: LiveState<Note>) =>
    void seen.add(`${loading} ${rows.map(({ body }) => body).join()}`);
  const props = { db, keepRows: true, onState };
  const page = rendered(createElement(Notes, { ...props, below: 3 }));
  await eventually(page.text, 'a,b');
  page.render(createElement(Notes, { ...props, below: 2 }));
  await eventually(page.text, 'a');
  expect([...seen]).toEqual(['true ', 'false a,b', 'true a,b', 'false a']);
});

test('runs one query under StrictMode, and ends it with the component', async () => {
  const db = await withNotes('a');
  const queries = vi.spyOn(db.live, 'query');
  let renders = 0;
  const notes = createElement(Notes, { db, below: 9, onState: () => void renders++ });
  const page = rendered(createElement(StrictMode, null, notes));
  await eventually(page.text, 'a');
  expect(queries).toHaveBeenCalledTimes(1);
  page.root.unmount();
  await settled();
  const before = renders;
  await db.query("insert into note values (2, 'b')");
  await settled();
  expect(renders).toBe(before);
  expect(queries.mock.calls[0]![3 as never]).toMatchObject({ signal: { aborted: true } });
});

test('shows the error of the query, and leaves it when the query changes', async () => {
  const db = await withNotes('a');
  function Any({ text }: { text: string }): ReactNode {
    const { rows, error } = useLiveQuery(db, text);
    return error === undefined ? `${rows.length}` : (error as { kind: string }).kind;
  }
  const page = rendered(createElement(Any, { text: 'select * from missing' }));
  await eventually(page.text, 'not_found');
  page.render(createElement(Any, { text: 'select * from note' }));
  await eventually(page.text, '1');
});

test('takes a query of the tag sql', async () => {
  const db = await withNotes('a', 'b');
  function Tagged({ id }: { id: number }): ReactNode {
    const { rows } = useLiveQuery<Note>(db, sql`select * from note where id = ${id}`);
    expectTypeOf(rows).toEqualTypeOf<readonly Note[]>();
    return rows[0]?.body;
  }
  const page = rendered(createElement(Tagged, { id: 2 }));
  await eventually(page.text, 'b');
  page.render(createElement(Tagged, { id: 1 }));
  await eventually(page.text, 'a');
});

test('renders as loading on a server', async () => {
  const db = await connect('memory://');
  expect(renderToString(createElement(Notes, { db, below: 9 }))).toBe('loading ');
  await db.close();
});
