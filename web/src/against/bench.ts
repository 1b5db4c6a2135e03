// The schedule of a comparison and its results so far.
//
// Systems take turns at every task, and each round begins with another one, so that a busy moment of
// the machine hits all of them. Only one system works at a time. A system that fails a task goes on
// with the next.

import { signal } from '@preact/signals';

import { rowSource } from '../load/rows';
import { TABLES } from '../load/tables';
import { different, median } from './compare';
import type { Answer, Job, LoadColumn, Opened, Value } from './protocol';
import { Remote } from './remote';
import { removeStored } from './stored';
import { SYSTEMS, type System } from './systems';
import { LOAD, SCHEMA, START, tasks, type Measured, type Task } from './tasks';

/** The measurements of one system in one task. */
export interface Cell {
  /** One time per round, in milliseconds. */
  times: number[];
  failure?: string;
}

/** A task and what was measured so far. */
export interface Outcome {
  task: Measured;
  cells: Record<string, Cell>;
  /** Systems whose results differ from the others'; undefined until all have answered. */
  different?: string[];
}

export type State = 'new' | 'running' | 'done' | 'stopped';

export const state = signal<State>('new');
/** What is being done now, and the part of all steps that is done. */
export const doing = signal({ text: '', fraction: 0 });
export const opened = signal<Record<string, Opened>>({});
/** Uncompressed bytes of code and files that each system has fetched. */
export const codeBytes = signal<Record<string, number>>({});
export const outcomes = signal<Outcome[]>([]);
/** Total rows that were loaded. */
export const rowCount = signal(0);

export const ROUNDS = 3;
const SLICE_ROWS = 20_000;

/** A comparison that runs: ends its workers when it is stopped. */
class Comparison {
  readonly #remotes = new Map<string, Remote>();
  readonly #tables = new Map<string, { text: string; rows: number }>();
  #source: ReturnType<typeof rowSource> | undefined;
  #steps = 1;
  #done = 0;
  stopped = false;

  async run(scale: number): Promise<void> {
    await removeStored();
    await this.#generate(scale);
    const loading = this.#tables.size * SYSTEMS.length;
    const list = tasks(this.#tables.get('orders')!.rows);
    this.#steps = SYSTEMS.length + loading + list.length * ROUNDS * SYSTEMS.length;
    const load = { ...LOAD, count: rowCount.value };
    outcomes.value = [START, load, ...list].map((task) => ({ task, cells: {} }));
    for (const system of SYSTEMS) await this.#start(system);
    await this.#load(load);
    for (const task of list) await this.#repeat(task);
  }

  stop(): void {
    this.stopped = true;
    this.#source?.close();
    for (const remote of this.#remotes.values()) remote.end();
  }

  async #generate(scale: number): Promise<void> {
    const source = rowSource();
    this.#source = source;
    for (const { name } of TABLES) {
      doing.value = { text: `Generating ${name}`, fraction: 0 };
      const parts: string[] = [];
      let rows = 0;
      for await (const slice of source.slices({ table: name, scale, slice: SLICE_ROWS })) {
        this.#mustGoOn();
        parts.push(slice.text);
        rows = slice.total;
      }
      this.#tables.set(name, { text: parts.join(''), rows });
      rowCount.value += rows;
    }
    source.close();
  }

  /** Starts a worker, opens an empty database in it and creates the tables. */
  async #start(system: System): Promise<void> {
    this.#step(`Starting ${system.name}`);
    const began = performance.now();
    try {
      const worker = await system.start();
      const remote = new Remote(worker);
      this.#remotes.set(system.id, remote);
      const answer = await remote.run({ name: 'open' });
      record(START, system, performance.now() - began);
      opened.value = { ...opened.value, [system.id]: answer.opened! };
      noteCode(system, answer);
      await remote.run({ name: 'exec', sql: SCHEMA });
    } catch (error) {
      this.#failed(START, system, error);
      this.#remotes.get(system.id)?.end();
      this.#remotes.delete(system.id);
    }
  }

  async #load(task: Measured): Promise<void> {
    const total = new Map<string, number>();
    for (const [round, table] of TABLES.entries()) {
      const columns = table.columns.map(({ name, field }): LoadColumn => ({
        name,
        integer: field === 'integer',
      }));
      const job: Job = {
        name: 'load',
        table: table.name,
        text: this.#tables.get(table.name)!.text,
      };
      for (const system of this.#turn(round)) {
        this.#step(`${system.name}: loading ${table.name}`);
        const answer = await this.#answer(task, system, job, columns);
        if (answer) total.set(system.id, (total.get(system.id) ?? 0) + answer.ms);
      }
      this.#tables.delete(table.name);
    }
    for (const system of SYSTEMS) {
      const ms = total.get(system.id);
      if (ms !== undefined && !cell(task, system)?.failure) record(task, system, ms);
    }
  }

  async #repeat(task: Task): Promise<void> {
    for (let round = 0; round < ROUNDS; round += 1) {
      const results = new Map<string, Value[][]>();
      for (const system of this.#turn(round)) {
        this.#step(`${system.name}: ${task.title.toLowerCase()}`);
        const answer = await this.#answer(task, system, task.job(round));
        if (!answer) continue;
        record(task, system, answer.ms);
        const check = task.check && { name: 'query' as const, sql: task.check(round) };
        const shown = check ? await this.#answer(task, system, check) : answer;
        if (shown) results.set(system.id, shown.rows);
      }
      judge(task, different(results));
    }
  }

  async #answer(
    task: Measured,
    system: System,
    job: Job,
    columns?: LoadColumn[],
  ): Promise<Answer | undefined> {
    const remote = this.#remotes.get(system.id)!;
    try {
      const answer = await remote.run(job, columns);
      noteCode(system, answer);
      return answer;
    } catch (error) {
      this.#failed(task, system, error);
      return undefined;
    }
  }

  /** The systems that run, beginning with another one in each round. */
  #turn(round: number): System[] {
    const running = SYSTEMS.filter(({ id }) => this.#remotes.has(id));
    const at = round % Math.max(1, running.length);
    return [...running.slice(at), ...running.slice(0, at)];
  }

  #failed(task: Measured, system: System, error: unknown): void {
    this.#mustGoOn();
    const failure = error instanceof Error ? error.message : String(error);
    change(task, system, { times: [], failure });
  }

  #step(text: string): void {
    this.#mustGoOn();
    doing.value = { text, fraction: this.#done / this.#steps };
    this.#done += 1;
  }

  #mustGoOn(): void {
    if (this.stopped) throw new Error('stopped');
  }
}

let current: Comparison | undefined;

/** Runs the comparison. */
export async function start(scale: number): Promise<void> {
  if (state.value === 'running') return;
  state.value = 'running';
  outcomes.value = [];
  opened.value = {};
  codeBytes.value = {};
  rowCount.value = 0;
  failure.value = '';
  const comparison = new Comparison();
  current = comparison;
  let end: State = 'stopped';
  try {
    await comparison.run(scale);
    end = 'done';
  } catch (error) {
    if (!comparison.stopped) failure.value = error instanceof Error ? error.message : String(error);
  } finally {
    comparison.stop();
    doing.value = { text: 'Removing the databases', fraction: 1 };
    await removeStored();
    state.value = end;
  }
}

/** Why a comparison ended early, unless the visitor stopped it. */
export const failure = signal('');

/** Ends the comparison. What was measured stays on the page. */
export const stop = (): void => current?.stop();

const cell = (task: Measured, system: System): Cell | undefined =>
  outcomes.value.find((outcome) => outcome.task.id === task.id)?.cells[system.id];

/** Adds the worker's script to what it has fetched. The second part of an engine comes late. */
function noteCode({ id }: System, { fetchedBytes }: Answer): void {
  const entries = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  const own = entries.findLast(({ name }) => name.includes(`/${id}.worker`) && !name.includes('?'));
  const bytes = fetchedBytes + (own?.decodedBodySize ?? 0);
  if (codeBytes.value[id] !== bytes) codeBytes.value = { ...codeBytes.value, [id]: bytes };
}

function record(task: Measured, system: System, ms: number): void {
  change(task, system, { times: [...(cell(task, system)?.times ?? []), ms] });
}

function change(task: Measured, { id }: System, next: Cell): void {
  outcomes.value = outcomes.value.map((outcome) =>
    outcome.task.id === task.id ? { ...outcome, cells: { ...outcome.cells, [id]: next } } : outcome,
  );
}

/** Notes which systems answered something else. What differed in one round stays different. */
function judge(task: Measured, names: string[]): void {
  outcomes.value = outcomes.value.map((outcome) =>
    outcome.task.id === task.id
      ? { ...outcome, different: [...new Set([...(outcome.different ?? []), ...names])] }
      : outcome,
  );
}

/** The time of a system in a task, in milliseconds; undefined before the first measurement. */
export function timeOf(outcome: Outcome, id: string): number | undefined {
  const times = outcome.cells[id]?.times ?? [];
  return times.length > 0 ? median(times) : undefined;
}
