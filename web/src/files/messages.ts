// Messages between the page and the worker that reads a file.

import type { Cell } from './infer';

/** A column of the new table. */
export interface FileColumn {
  name: string;
  /** As SQL writes it. */
  type: string;
}

/** Why a file cannot be imported. */
export interface FileFailure {
  /** `csv`, `json`, `arrow`, `parquet`, `encoding`, `empty` or `unsupported`. */
  kind: string;
  message: string;
  line?: number;
}

/** From the worker. Every `rows` and `arrow` waits until the page asks for more. */
export type FileMessage =
  | { kind: 'progress'; text: string; fraction: number }
  | { kind: 'table'; columns: FileColumn[] }
  | { kind: 'rows'; columns: Record<string, Cell[]>; count: number; fraction: number }
  | { kind: 'arrow'; bytes: Uint8Array; count: number; fraction: number }
  | { kind: 'end' }
  | { kind: 'failure'; failure: FileFailure };

/** To the worker: the file first, then one `more` after each message that waits. */
export type PageMessage = { file: File } | 'more';

/** A failure of a file, thrown inside the worker. */
export class FileError extends Error {
  readonly failure: FileFailure;

  constructor(kind: string, message: string, line?: number) {
    super(message);
    this.failure = { kind, message, line };
  }
}

/** Part of a file: its columns come first. Progress is a part of the whole, from 0 to 1. */
export type Piece = Exclude<FileMessage, { kind: 'end' } | { kind: 'failure' }>;

/** Reads a file of one format. */
export type Reader = (file: File) => AsyncGenerator<Piece>;

/** Rows per piece. */
export const PIECE_ROWS = 50_000;
