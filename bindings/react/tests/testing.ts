/** Fixtures of the tests: a database with a few notes, and waiting for what comes later. */

import { connect, type Database } from 'nacredb';
import { afterEach, expect, vi } from 'vitest';

const open: Database[] = [];

/** A database with the table `note (id bigint primary key, body text)` and these notes. */
export async function withNotes(...bodies: string[]): Promise<Database> {
  const db = await connect('memory://', { types: { bigint: 'number' } });
  open.push(db);
  await db.exec('create table note (id bigint primary key, body text)');
  for (const [i, body] of bodies.entries()) {
    await db.query('insert into note values (?, ?)', [i + 1, body]);
  }
  return db;
}

/** Waits until a value is as expected. */
export function eventually(value: () => unknown, expected: unknown): Promise<void> {
  return vi.waitFor(() => expect(value()).toEqual(expected), { timeout: 5_000, interval: 5 });
}

/** Waits long enough for a live query to run again. */
export const settled = () => new Promise((resolve) => setTimeout(resolve, 40));

afterEach(async () => {
  await Promise.all(open.splice(0).map((db) => db.close()));
});
