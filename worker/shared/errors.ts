/**
 * The package's error class, and the form in which errors travel between a worker and a page. The
 * kinds are the engine's, name for name. Users see no other errors: `toErrorData` converts whatever
 * a runtime throws.
 */

/** Kind of an error. The package's README says what to do about each. */
export type ErrorKind =
  | 'syntax'
  | 'type'
  | 'not_found'
  | 'already_exists'
  | 'constraint'
  | 'conflict'
  | 'lock_timeout'
  | 'deadlock'
  | 'limit'
  | 'unavailable'
  | 'in_use'
  | 'corrupt'
  | 'io'
  | 'unsupported'
  | 'cancelled'
  | 'closed';

/** A position in SQL text. */
export interface Position {
  /** Line, counted from 1. */
  line: number;
  /** Column, counted from 1 in characters. */
  column: number;
}

/** An error as plain data: what the engine throws, and what messages carry. */
export interface ErrorData {
  kind: ErrorKind;
  message: string;
  sqlstate?: string | undefined;
  position?: Position | undefined;
  hint?: string | undefined;
  table?: string | undefined;
  key?: string | undefined;
  mayHaveRun?: boolean | undefined;
}

const SQLSTATES: Record<ErrorKind, string> = {
  syntax: '42601',
  type: '42804',
  not_found: '42704',
  already_exists: '42710',
  constraint: '23000',
  conflict: '40001',
  lock_timeout: '55P03',
  deadlock: '40P01',
  limit: '54000',
  unavailable: '57P03',
  in_use: '55006',
  corrupt: 'XX001',
  io: '58030',
  unsupported: '0A000',
  cancelled: '57014',
  closed: '08003',
};

const RETRYABLE: ReadonlySet<ErrorKind> = new Set([
  'conflict',
  'lock_timeout',
  'deadlock',
  'unavailable',
]);

/**
 * Any failure of the database.
 *
 * @example
 * ```ts
 * try {
 *   await db.query('select * from vist');
 * } catch (error) {
 *   if (error instanceof NacreError) {
 *     console.log(error.kind, error.sqlstate); // not_found 42P01
 *     console.log(error.position); // { line: 1, column: 15 }
 *   }
 * }
 * ```
 */
export class NacreError extends Error {
  override readonly name = 'NacreError';
  /** Kind of the error. */
  readonly kind: ErrorKind;
  /** Five-character SQLSTATE. */
  readonly sqlstate: string;
  /** Position in the SQL text, if the error has one. */
  readonly position: Position | undefined;
  /** Advice, such as a similar name. */
  readonly hint: string | undefined;
  /** Table whose constraint was violated. */
  readonly table: string | undefined;
  /** Name of the violated key. */
  readonly key: string | undefined;
  /**
   * Whether the statement may have been done although it failed: the tab that had the database open
   * went away before it answered, or with `durability: 'blob'` a commit was done and not uploaded in
   * time. Running it again is safe only if doing it twice is.
   */
  readonly mayHaveRun: boolean;

  constructor(data: ErrorData, options?: ErrorOptions) {
    super(data.message, options);
    this.kind = data.kind;
    this.sqlstate = data.sqlstate ?? SQLSTATES[data.kind];
    this.position = data.position;
    this.hint = data.hint;
    this.table = data.table;
    this.key = data.key;
    this.mayHaveRun = data.mayHaveRun ?? false;
  }

  /**
   * Whether running the same transaction again may succeed: after a conflict, a deadlock, a lock
   * timeout, or while something is unavailable. If `mayHaveRun`, it may have been done already.
   *
   * @example
   * ```ts
   * async function retrying<T>(work: (tx: Transaction) => Promise<T>, attempts = 5): Promise<T> {
   *   for (;;) {
   *     try {
   *       return await db.transaction(work);
   *     } catch (error) {
   *       attempts--;
   *       const again = error instanceof NacreError && error.retryable && !error.mayHaveRun;
   *       if (!again || attempts === 0) throw error;
   *     }
   *   }
   * }
   * await retrying((tx) => tx.query('update visit set ms = ms + 1 where id = 1'));
   * ```
   */
  get retryable(): boolean {
    return RETRYABLE.has(this.kind);
  }
}

/** Makes an error of a kind. */
export function nacreError(kind: ErrorKind, message: string, cause?: unknown): NacreError {
  return new NacreError({ kind, message }, cause === undefined ? undefined : { cause });
}

/**
 * Converts anything thrown to data. `context` says what was being done, for errors that are not a
 * NacreError.
 */
export function toErrorData(thrown: unknown, context = ''): ErrorData {
  if (isErrorData(thrown)) {
    const { kind, message, sqlstate, position, hint, table, key, mayHaveRun } = thrown;
    return { kind, message, sqlstate, position, hint, table, key, mayHaveRun };
  }
  const {
    name = '',
    message = String(thrown),
    code,
  } = (thrown ?? {}) as Partial<Error> & { code?: string };
  const prefix = context === '' ? '' : `${context}: `;
  if (name === 'QuotaExceededError' || code === 'ENOSPC' || code === 'EDQUOT') {
    return { kind: 'limit', message: `${prefix}no storage left: ${message}` };
  }
  if (name === 'NoModificationAllowedError') {
    return { kind: 'in_use', message: `${prefix}the file is open elsewhere: ${message}` };
  }
  if (name === 'NotFoundError' || code === 'ENOENT') {
    return { kind: 'not_found', message: `${prefix}${message}` };
  }
  if (name === 'DataCloneError') {
    return { kind: 'type', message: `${prefix}a value cannot be sent to the worker: ${message}` };
  }
  if (name === 'AbortError') {
    return { kind: 'cancelled', message: `${prefix}${message}` };
  }
  return { kind: 'io', message: `${prefix}${name === '' ? '' : `${name}: `}${message}` };
}

function isErrorData(value: unknown): value is ErrorData {
  const kind = (value as ErrorData | null | undefined)?.kind;
  return typeof kind === 'string' && Object.hasOwn(SQLSTATES, kind);
}
