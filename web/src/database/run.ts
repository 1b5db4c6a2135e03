// Runs scripts statement by statement, each with its own result, and stops at the first failure.
//
// If a script fails inside a transaction that it began, the transaction is rolled back, so that the
// console holds no locks unnoticed. A transaction that a script leaves open stays open, and the
// console says so (`openTransaction`); a later script that fails does not roll it back.

import { signal } from '@preact/signals';

import { asFailure, query } from './connection';
import { commits } from './counters';
import { refreshLayers } from './layers';
import { split } from './split';
import type { StatementResult, Failure } from './types';

/** One statement of a run. */
export interface Step {
  text: string;
  /** Position of its first character in the editor. */
  from: number;
  answer?: StatementResult;
  failure?: Failure;
  /** Time from the call to the answer, as the page measured it. */
  roundTripMs: number;
}

/** One press of Run. */
export interface Run {
  /** Counts the runs of this page, from 1. */
  number: number;
  steps: Step[];
  /** Number of statements after the failed one, which were not run. */
  skipped: number;
  rolledBack: boolean;
}

export const run = signal<Run | null>(null);
export const selectedStep = signal(0);
/** Whether a script is running and has taken long enough for the page to show it. */
export const running = signal(false);
/** Whether the running script was told to stop. */
export const stopping = signal(false);
export const openTransaction = signal(false);

const SLOW_MS = 150;
let started = false;
let controller = new AbortController();

/** Whether a script is running, even if it has only just begun. */
export const isBusy = (): boolean => started;

/** Cancels the running statement, after which its script ends as after any failure. */
export function stop(): void {
  stopping.value = running.value;
  controller.abort();
}

/** Runs a script whose first character is at `offset` in the editor. */
export async function runScript(script: string, offset = 0): Promise<void> {
  const statements = split(script);
  if (started || statements.length === 0) return;
  started = true;
  controller = new AbortController();
  const slow = setTimeout(() => (running.value = true), SLOW_MS);
  await drawn();
  const steps: Step[] = [];
  let rolledBack = false;
  // Whether an earlier run began the transaction that is open.
  let inherited = openTransaction.value;
  try {
    for (const { text, from } of statements) {
      const step = await runStatement(text, offset + from);
      steps.push(step);
      if (step.failure) {
        rolledBack = !inherited && (await abandonTransaction());
        break;
      }
      const open = followTransaction(text);
      const changed = (step.answer?.rowsAffected ?? 0) > 0 || isCommit(firstWord(text));
      if (changed && !open) commits.value += 1;
      inherited &&= openTransaction.value;
    }
  } finally {
    selectedStep.value = mostInteresting(steps);
    run.value = {
      number: (run.value?.number ?? 0) + 1,
      steps,
      skipped: statements.length - steps.length,
      rolledBack,
    };
    clearTimeout(slow);
    running.value = false;
    stopping.value = false;
    started = false;
  }
  // Fails only if the engine has stopped, which the failed statement has reported.
  await refreshLayers().catch(() => {});
}

/** Ends a transaction that a script left open. */
export async function endTransaction(how: 'commit' | 'rollback'): Promise<void> {
  await runScript(how);
}

async function runStatement(text: string, from: number): Promise<Step> {
  const started = performance.now();
  const step: Step = { text, from, roundTripMs: 0 };
  try {
    step.answer = await query(text, controller.signal);
  } catch (error) {
    step.failure = asFailure(error);
  }
  step.roundTripMs = performance.now() - started;
  return step;
}

/** Notes what a statement does to the transaction, and answers whether one is open after it. */
function followTransaction(text: string): boolean {
  const word = firstWord(text);
  if (word === 'begin' || word === 'transaction') openTransaction.value = true;
  else if (isCommit(word) || word === 'abort' || (word === 'rollback' && !/\bto\b/i.test(text)))
    openTransaction.value = false;
  return openTransaction.value;
}

const isCommit = (word: string | undefined): boolean => word === 'commit' || word === 'end';

const firstWord = (text: string): string | undefined =>
  /^\s*(?:start\s+)?([a-z]+)/i.exec(text)?.[1]?.toLowerCase();

/** Rolls back the open transaction, if there is one, and answers whether there was one. */
export async function abandonTransaction(): Promise<boolean> {
  if (!openTransaction.value) return false;
  openTransaction.value = false;
  try {
    await query('rollback');
    return true;
  } catch {
    // Fails only if the engine has stopped, and its transactions have ended with it.
    return true;
  }
}

/**
 * The failed step if there is one, else the last with rows, else the last that changed something.
 */
function mostInteresting(steps: Step[]): number {
  const last = (wanted: (step: Step) => boolean) => steps.findLastIndex(wanted);
  for (const wanted of [
    (step: Step) => step.failure !== undefined,
    (step: Step) => (step.answer?.columns.length ?? 0) > 0,
    (step: Step) => (step.answer?.rowsAffected ?? 0) > 0,
  ]) {
    const index = last(wanted);
    if (index >= 0) return index;
  }
  return Math.max(0, steps.length - 1);
}

/** Waits for the next frame, so that the page's own work is not measured as the database's. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    // A hidden page draws no frames.
    setTimeout(resolve, 50);
  });
}
