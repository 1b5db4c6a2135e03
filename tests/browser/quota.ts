/** What tests of an exceeded quota do in a page, and what they expect of it. */

import { expect } from 'vitest';

/**
 * Inserts text that does not compress until two inserts have failed, and closes the database of the page. Runs in
 * the page, so it uses nothing of this file.
 */
export async function fillUp() {
  const { db } = window;
  await db.exec('create table filler (id bigint primary key, body text)');
  const errors: { kind: string; message: string }[] = [];
  let acknowledged = 0;
  for (let id = 0; id < 1_000 && errors.length < 2; id++) {
    const body = Array.from({ length: 5_000 }, () => Math.random().toString(36)).join('');
    await db.query('insert into filler values (?, ?)', [id, body]).then(
      () => acknowledged++,
      ({ kind, message }) => errors.push({ kind, message }),
    );
  }
  const { rows } = await db.query<{ n: bigint }>('select count(*) as n from filler');
  const closed = await db.close().catch(({ kind }) => kind as string);
  return { errors, acknowledged, found: Number(rows[0]!.n), closed };
}

/** The errors of the first two inserts without room. */
export const FULL = [
  {
    kind: 'limit',
    message: expect.stringMatching(/no storage left .*free some, then connect again/),
  },
  { kind: 'io', message: expect.stringContaining('until the database is reopened') },
];
