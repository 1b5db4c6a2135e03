/** A call of a tab that shares a database: what it begins, needs and ends, and the errors of its loss. */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import { MAIN_SESSION, type ConnectionMethod } from '../../../worker/shared/protocol.js';
import type { MessageTransport } from './message-transport.js';

/** A call that has not ended. */
export interface TabCall {
  method: ConnectionMethod;
  args: readonly unknown[];
  resolve: (answer: never) => void;
  reject: (error: NacreError) => void;
  /** The leader that it was sent to; null while it waits. */
  link: MessageTransport | null;
  /** Whether it was sent to an earlier leader, which may have run it. */
  isRepeated: boolean;
  since: number;
}

/** Calls that may have a ticket. */
export const CANCELLABLE: ReadonlySet<ConnectionMethod> = new Set(['execute', 'arrow', 'run']);
/** Calls that may run twice. */
export const REPEATABLE: ReadonlySet<ConnectionMethod> = new Set([
  'lag',
  'refresh',
  'upload',
  'prepare',
  'finalize',
  'live',
  'changes',
  'nextLive',
  'createFunction',
  'dropFunction',
  'export',
  'inspect',
  'storage',
  'flush',
]);

/** Calls whose first argument is a session. */
const IN_SESSION: ReadonlySet<ConnectionMethod> = new Set([
  'end',
  'execute',
  'arrow',
  'prepare',
  'run',
  'stream',
  'runStream',
  'load',
]);

/** The session, stream, load or feed of changes that a call begins. */
export function begunBy({ method, args }: TabCall): string | null {
  switch (method) {
    case 'begin':
      return `session ${args[0] as number}`;
    case 'stream':
    case 'runStream':
      return `stream ${args[1] as number}`;
    case 'load':
      return `load ${args[1] as number}`;
    case 'changes':
      return `feed ${args[0] as number}`;
    default:
      return null;
  }
}

/** The session, stream, load or feed of changes that a call needs. */
export function needOf({ method, args }: TabCall): string | null {
  switch (method) {
    case 'more':
      return `stream ${args[0] as number}`;
    case 'nextLive':
      // Of a query it is never lost: that is made again.
      return `feed ${args[0] as number}`;
    case 'loadArrow':
    case 'loadColumns':
    case 'finishLoad':
      return `load ${args[0] as number}`;
    default:
      return IN_SESSION.has(method) && args[0] !== MAIN_SESSION
        ? `session ${args[0] as number}`
        : null;
  }
}

/** Whether a call runs in the session that outlives transactions. */
export function isInMain({ method, args }: TabCall): boolean {
  return IN_SESSION.has(method) && args[0] === MAIN_SESSION;
}

export function lostTransaction(): NacreError {
  return nacreError(
    'conflict',
    'the transaction was rolled back: the tab that had the database open is gone',
  );
}

export function lostNames(): NacreError {
  return new NacreError({
    kind: 'conflict',
    message:
      'temporary tables and names given by PREPARE are gone: the tab that had the database open is',
    hint: 'make them again; without them, the same names may stand for other tables',
  });
}

export function mayHaveRun(): NacreError {
  return new NacreError({
    kind: 'unavailable',
    message: 'the tab that had the database open went away before it answered',
    hint: 'the statement may have been done: look before you run it again',
    mayHaveRun: true,
  });
}
