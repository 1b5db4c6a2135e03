// The state of the page: opening the database, filling it, ready, or failed.

import { signal } from '@preact/signals';

import { isLoaded, load } from '../load/load';
import { asFailure, open, storage, type Opened } from './connection';
import { refreshLayers } from './layers';
import { abandonTransaction, isBusy } from './run';
import type { Failure } from './types';

/** The screen to show. */
export type Phase =
  | { name: 'opening' }
  | { name: 'in_use'; trying: boolean }
  | { name: 'loading' }
  | { name: 'ready' }
  | { name: 'failed'; failure: Failure };

export const phase = signal<Phase>({ name: 'opening' });
export const opened = signal<Opened>({ url: '' });
/** What the first load wrote; null if the data was already there. */
export const loaded = signal<{ rows: number; ms: number } | null>(null);
export const persisted = signal(false);

/**
 * Opens the database and fills it if it is new. Called again after another tab had the database
 * open.
 */
export async function start(): Promise<void> {
  if (phase.value.name === 'in_use') phase.value = { name: 'in_use', trying: true };
  try {
    if (!opened.value.url) opened.value = await open();
    if (!(await isLoaded())) {
      phase.value = { name: 'loading' };
      loaded.value = await load();
    }
    await refreshLayers();
    phase.value = { name: 'ready' };
    persisted.value = (await storage()).persisted;
  } catch (error) {
    const failure = asFailure(error);
    phase.value =
      failure.kind === 'in_use' ? { name: 'in_use', trying: false } : { name: 'failed', failure };
  }
}

/** Discards every change, including those of an open transaction, and generates the data again. */
export async function reset(): Promise<void> {
  if (isBusy()) return;
  phase.value = { name: 'loading' };
  try {
    await abandonTransaction();
    loaded.value = await load();
    await refreshLayers();
    phase.value = { name: 'ready' };
  } catch (error) {
    phase.value = { name: 'failed', failure: asFailure(error) };
  }
}
