// The state of the page: opening the database, filling it, ready, or failed.

import { signal } from '@preact/signals';

import { isLoaded, load, scale, type Loaded } from '../load/load';
import { asFailure, open, query, storage, STORED_URL, type Opened } from './connection';
import { refreshLayers } from './layers';
import { abandonTransaction, isBusy } from './run';
import { watchTabs } from './tabs';
import type { Failure } from './types';
import { stopWriter } from './writer';

/** The screen to show. */
export type Phase =
  | { name: 'opening' }
  | { name: 'in_use'; trying: boolean }
  /** `stop` ends a load that replaces data. */
  | { name: 'loading'; scale: number; stop?: () => void }
  | { name: 'ready' }
  | { name: 'failed'; failure: Failure };

export const phase = signal<Phase>({ name: 'opening' });
export const opened = signal<Opened>({ url: '' });
/** What the first load wrote; null if the data was already there. */
export const loaded = signal<Loaded | null>(null);
export const persisted = signal(false);

/**
 * Opens the database and fills it if it is new. Called again after a tab with another version had
 * the database open.
 */
export async function start(): Promise<void> {
  if (phase.value.name === 'in_use') phase.value = { name: 'in_use', trying: true };
  try {
    if (!opened.value.url) opened.value = await open();
    if (opened.value.url === STORED_URL) watchTabs();
    await alone(async () => {
      if (await isLoaded()) return;
      phase.value = { name: 'loading', scale: scale.value };
      loaded.value = await load(scale.value);
    });
    await refreshLayers();
    phase.value = { name: 'ready' };
    persisted.value = (await storage()).persisted;
    await warm();
  } catch (error) {
    const failure = asFailure(error);
    phase.value =
      failure.kind === 'in_use' ? { name: 'in_use', trying: false } : { name: 'failed', failure };
  }
}

/**
 * Does work while no other tab does: two tabs that are opened together must not both fill the
 * database.
 */
async function alone(work: () => Promise<void>): Promise<void> {
  await (navigator.locks ? navigator.locks.request('nacre demo: fill', work) : work());
}

/**
 * Lets the engine fetch its second part, which joins and large results need, while the visitor reads
 * the page. A failure shows when a statement needs it.
 */
async function warm(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  const nothing = 'from lineitem join orders on o_orderkey = l_orderkey where l_orderkey < 0';
  await query(`select o_orderstatus, avg(l_quantity) ${nothing} group by o_orderstatus`).catch(
    () => {},
  );
}

/**
 * Discards every change, including those of an open transaction, and generates the data again, at
 * any scale. Stopping it keeps the data as it was.
 */
export async function reset(wanted = scale.value): Promise<void> {
  if (isBusy()) return;
  await stopWriter();
  const controller = new AbortController();
  phase.value = { name: 'loading', scale: wanted, stop: () => controller.abort() };
  try {
    await abandonTransaction();
    loaded.value = await load(wanted, controller.signal);
    await refreshLayers();
    phase.value = { name: 'ready' };
  } catch (error) {
    phase.value = controller.signal.aborted
      ? { name: 'ready' }
      : { name: 'failed', failure: asFailure(error) };
  }
}
