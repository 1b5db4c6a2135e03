// A writer for the storage view: small transactions, one after another, on a table of its own, while
// the visitor watches the layers or runs queries beside it.
//
// A live query follows the table, and runs again after each commit.

import { signal } from '@preact/signals';
import type { LiveSubscription } from 'nacredb';

import { asFailure, connection } from './connection';
import { commits } from './counters';
import { refreshLayers, selectedTable } from './layers';
import { openTransaction } from './run';
import type { Failure } from './types';

export const WRITER_TABLE = 'sensor';

/** What the writer has done so far. */
export interface Writing {
  commits: number;
  perSecond: number;
  /** From the live query. */
  rows: number;
  mean: number;
  failure?: Failure;
}

export const writing = signal<Writing | null>(null);

const ROWS_PER_COMMIT = 8;
const PAUSE_MS = 15;
const REFRESH_MS = 250;
/** The engine flushes by itself, but not so soon that one sees it. */
const FLUSH_MS = 2500;

let stopping = false;
let ended: Promise<void> = Promise.resolve();

export const isWriting = (): boolean => writing.value !== null && !writing.value.failure;

/** Starts the writer; it runs until `stopWriter`, or until a transaction fails. */
export function startWriter(): void {
  if (isWriting()) return;
  stopping = false;
  writing.value = { commits: 0, perSecond: 0, rows: 0, mean: 0 };
  ended = write();
}

export async function stopWriter(): Promise<void> {
  stopping = true;
  await ended;
}

async function write(): Promise<void> {
  let live: LiveSubscription<{ n: bigint; mean: number | null }> | undefined;
  try {
    const db = connection();
    await db.exec(
      `create table if not exists ${WRITER_TABLE} (id bigint primary key, taken timestamp(6), place varchar(8), value double)`,
    );
    selectedTable.value = WRITER_TABLE;
    const { rows } = await db.query<{ next: bigint }>(
      `select coalesce(max(id), 0) + 1 as next from ${WRITER_TABLE}`,
    );
    live = await db.live.query<{ n: bigint; mean: number | null }>(
      `select count(*) as n, avg(value) as mean from ${WRITER_TABLE}`,
      [],
      ({ rows: [row] }) => {
        if (row) change({ rows: Number(row.n), mean: row.mean ?? 0 });
      },
    );
    await commitUntilStopped(Number(rows[0]!.next));
    writing.value = null;
  } catch (error) {
    change({ failure: asFailure(error), perSecond: 0 });
  } finally {
    await live?.unsubscribe().catch(() => {});
    await refreshLayers().catch(() => {});
  }
}

async function commitUntilStopped(first: number): Promise<void> {
  let next = first;
  let count = 0;
  let shown = performance.now();
  let shownCount = 0;
  let flushed = shown;
  while (!stopping) {
    await commit(next);
    next += ROWS_PER_COMMIT;
    count += 1;
    commits.value += 1;
    // An open transaction of the console would make a flush a part of it.
    const now = performance.now();
    if (now - flushed > FLUSH_MS && !openTransaction.value) {
      await connection().exec(`optimize table ${WRITER_TABLE} flush`);
      flushed = now;
    }
    if (now - shown > REFRESH_MS) {
      change({ commits: count, perSecond: (1000 * (count - shownCount)) / (now - shown) });
      shown = now;
      shownCount = count;
      await refreshLayers();
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** One transaction: some new rows, an update of an earlier one, and a deletion. */
async function commit(next: number): Promise<void> {
  const values = Array.from({ length: ROWS_PER_COMMIT }, (_, index) => [
    next + index,
    new Date(),
    `p${(next + index) % 12}`,
    20 + 8 * Math.sin((next + index) / 400) + Math.random(),
  ]).flat();
  const earlier = () => 1 + Math.floor(Math.random() * next);
  const row = '(?, ?, ?, ?)';
  await connection().transaction(async (tx) => {
    const all = Array<string>(ROWS_PER_COMMIT).fill(row).join(', ');
    // Together, so that they travel in one message.
    await Promise.all([
      tx.query(`insert into ${WRITER_TABLE} values ${all}`, values),
      tx.query(`update ${WRITER_TABLE} set value = value + 1 where id = ?`, [earlier()]),
      tx.query(`delete from ${WRITER_TABLE} where id = ?`, [earlier()]),
    ]);
  });
}

function change(some: Partial<Writing>): void {
  if (writing.value) writing.value = { ...writing.value, ...some };
}
