// Makes a table from a file.
//
// A worker reads the file and sends pieces; the page inserts each and asks for the next, so only one
// piece is in memory. Until the last piece is in, the table is the page's own business: a failure or
// Stop drops it again.

import { signal } from '@preact/signals';

import { asFailure, connection } from '../database/connection';
import { layers, refreshLayers, selectedTable } from '../database/layers';
import { isBusy, openTransaction } from '../database/run';
import type { Failure } from '../database/types';
import { openScript } from '../editor/desk';
import FilesWorker from './files.worker?worker';
import { tableName } from './infer';
import type { FileColumn, FileMessage } from './messages';

/** What an import is doing, or why it failed. */
export interface Importing {
  file: string;
  text: string;
  rows: number;
  fraction: number;
  failure?: Failure;
}

export const importing = signal<Importing | null>(null);

let abort: AbortController | undefined;

/** Ends the import that is running, or removes the message of one that failed. */
export function dismissImport(): void {
  if (importing.value?.failure) importing.value = null;
  else abort?.abort();
}

export async function importFile(file: File): Promise<void> {
  if (importing.value && !importing.value.failure) return;
  importing.value = { file: file.name, text: 'Reading', rows: 0, fraction: 0 };
  const controller = new AbortController();
  abort = controller;
  try {
    mustBeFree();
    const table = tableName(
      file.name,
      layers.value.map(({ name }) => name),
    );
    await load(file, table, controller.signal);
    importing.value = null;
    await refreshLayers();
    selectedTable.value = table;
    openScript(`select *\nfrom ${quoted(table)}\nlimit 1000`, true);
  } catch (error) {
    const failure = error instanceof ReadFailure ? error.failure : asFailure(error);
    importing.value = controller.signal.aborted ? null : { ...importing.value!, failure };
    await refreshLayers().catch(() => {});
  } finally {
    abort = undefined;
  }
}

class ReadFailure extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

function mustBeFree(): void {
  if (!openTransaction.value && !isBusy()) return;
  const message = openTransaction.value
    ? 'a transaction is open: commit it or roll it back first'
    : 'a statement is running';
  throw new ReadFailure({ kind: 'busy', message });
}

async function load(file: File, table: string, signal: AbortSignal): Promise<void> {
  const worker = new FilesWorker();
  let created = false;
  try {
    for await (const message of messages(worker, file, signal)) {
      if (message.kind === 'table') {
        await connection().exec(createTable(table, message.columns));
        created = true;
      } else if (message.kind === 'rows') {
        await connection().insertRows(table, message.columns, { signal });
      } else if (message.kind === 'arrow') {
        await connection().insertArrow(table, message.bytes, { signal });
      }
      show(table, message);
      if (message.kind !== 'progress') worker.postMessage('more');
    }
  } catch (error) {
    if (created) await connection().exec(`drop table ${quoted(table)}`);
    throw error;
  } finally {
    worker.terminate();
  }
}

/** The worker's messages until the end of the file. Ends with an error if it fails or is aborted. */
async function* messages(
  worker: Worker,
  file: File,
  signal: AbortSignal,
): AsyncGenerator<Exclude<FileMessage, { kind: 'end' | 'failure' }>> {
  const waiting: FileMessage[] = [];
  let wake = () => {};
  const arrive = (message: FileMessage) => {
    waiting.push(message);
    wake();
  };
  const fail = (kind: string, message: string) =>
    arrive({ kind: 'failure', failure: { kind, message } });
  worker.onmessage = ({ data }: MessageEvent<FileMessage>) => arrive(data);
  worker.onerror = ({ message }) => fail('page', message || 'the reader could not be loaded');
  signal.addEventListener('abort', () => fail('cancelled', 'the import was stopped'));
  worker.postMessage({ file });
  for (;;) {
    const message = waiting.shift();
    if (!message) await new Promise<void>((resolve) => (wake = resolve));
    else if (message.kind === 'failure') throw new ReadFailure(message.failure);
    else if (message.kind === 'end') return;
    else yield message;
  }
}

function show(table: string, message: FileMessage): void {
  const before = importing.value!;
  if (message.kind === 'progress') {
    importing.value = { ...before, text: message.text, fraction: message.fraction };
  } else if (message.kind === 'rows' || message.kind === 'arrow') {
    const rows = before.rows + message.count;
    importing.value = { ...before, text: `Into ${table}`, rows, fraction: message.fraction };
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function createTable(table: string, columns: FileColumn[]): string {
  const lines = columns.map(({ name, type }) => `  ${quoted(name)} ${type}`);
  return `create table ${quoted(table)} (\n${lines.join(',\n')}\n)`;
}
