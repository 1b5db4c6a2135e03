/**
 * How calls reach the engine: as messages to a worker, or directly where the engine runs in the
 * same thread.
 */

import type { Answer, Arguments, ConnectionMethod } from '../../../worker/shared/protocol.js';

/** Carries the calls of one connection. Calls of one session run in the order they were made. */
export interface Transport<Methods extends ConnectionMethod = ConnectionMethod> {
  /**
   * Whether the engine works while the caller does. If so, asking for data ahead of need saves
   * time.
   */
  readonly ahead: boolean;
  /** Calls a method. Fails with a NacreError only. */
  call<M extends Methods>(method: M, ...args: Arguments<M>): Promise<Answer<M>>;
  /** Ends the transport after `close` was answered, or when opening failed. */
  end(): void;
  /** Where several tabs share the database: which one has it open. */
  readonly leadership?: Leadership;
}

/** Whether this tab is the one that has a shared database open. */
export interface Leadership {
  readonly isLeader: boolean;
  /** Calls the listener when another tab has taken over. Returns a function that removes it. */
  onChange(listener: (isLeader: boolean) => void): () => void;
}
