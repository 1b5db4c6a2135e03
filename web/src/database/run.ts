// Runs what is in the editor: statement after statement, each with its own answer, stopping at the first failure.
//
// A script that fails inside its own transaction is rolled back, so the console never keeps locks nobody sees.
// A script that ends with its transaction open leaves it open, and says so (`openTransaction`); one that fails later
// does not take back what an earlier one did.

import { signal } from '@preact/signals';

import { asFailure, query } from './connection';
import { refreshLayers } from './layers';
import { split } from './split';
import type { Answer, Failure } from './types';

/** One statement of a run. */
export interface Step {
  text: string;
  /** Place of its first character in the editor. */
  from: number;
  answer?: Answer;
  failure?: Failure;
  /** From the call to the answer, as the page felt it. */
  roundTripMs: number;
}

/** Everything one press of Run did. */
export interface Run {
  /** Counts the runs of this page, from 1. */
  number: number;
  steps: Step[];
  /** How many statements after the failed one were not run. */
  skipped: number;
  rolledBack: boolean;
}

export const run = signal<Run | null>(null);
export const selectedStep = signal(0);
/** Whether a run has taken long enough to be worth showing. */
export const running = signal(false);
export const openTransaction = signal(false);

const SLOW_MS = 150;
let started = false;

/** Whether a script runs, also when it has just begun. */
export const isBusy = (): boolean => started;

/** Runs a script that begins at `offset` in the editor. */
export async function runScript(script: string, offset = 0): Promise<void> {
  const statements = split(script);
  if (started || statements.length === 0) return;
  started = true;
  const slow = setTimeout(() => (running.value = true), SLOW_MS);
  await drawn();
  const steps: Step[] = [];
  let rolledBack = false;
  // Whether the transaction that is open was begun by an earlier run.
  let inherited = openTransaction.value;
  try {
    for (const { text, from } of statements) {
      const step = await runStatement(text, offset + from);
      steps.push(step);
      if (step.failure) {
        rolledBack = !inherited && (await abandonTransaction());
        break;
      }
      followTransaction(text);
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
    started = false;
  }
  // An engine that has stopped cannot say; the failed statement has said so.
  await refreshLayers().catch(() => {});
}

/** Ends the transaction a script left open. */
export async function endTransaction(how: 'commit' | 'rollback'): Promise<void> {
  await runScript(how);
}

async function runStatement(text: string, from: number): Promise<Step> {
  const started = performance.now();
  const step: Step = { text, from, roundTripMs: 0 };
  try {
    step.answer = await query(text);
  } catch (error) {
    step.failure = asFailure(error);
  }
  step.roundTripMs = performance.now() - started;
  return step;
}

function followTransaction(text: string): void {
  const word = /^\s*(?:start\s+)?([a-z]+)/i.exec(text)?.[1]?.toLowerCase();
  if (word === 'begin' || word === 'transaction') openTransaction.value = true;
  else if (word === 'commit' || (word === 'rollback' && !/\bto\b/i.test(text)))
    openTransaction.value = false;
}

/** Rolls back the transaction that is open, and answers whether one was. */
export async function abandonTransaction(): Promise<boolean> {
  if (!openTransaction.value) return false;
  openTransaction.value = false;
  try {
    await query('rollback');
    return true;
  } catch {
    // Only an engine that has stopped refuses, and its transactions have ended with it.
    return true;
  }
}

/** The failure if there is one, else the last answer with rows, else the last one that changed something. */
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

/** The next frame has been drawn: the page's own work is not to be measured as the database's. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    // A hidden page draws no frames.
    setTimeout(resolve, 50);
  });
}
