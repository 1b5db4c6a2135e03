/**
 * The alarm of a Durable Object whose database has blobs. What was written is uploaded a moment later, unless
 * the object leaves memory first, which it may at any time. The alarm brings it back for that.
 *
 * It is set in the same turn as the first write, and the platform stores both or neither.
 */

import { nacreError } from '../shared/errors.js';

/** The part of a Durable Object's storage that sets alarms. */
export interface AlarmStorage {
  setAlarm(at: number): Promise<void>;
}

/** From a write to the alarm: longer than the upload usually takes, which the object does by itself. */
const AFTER_MS = 30_000;

/** The alarm of one object. */
export class Alarm {
  readonly #storage: AlarmStorage;
  /** Settles when the alarm is set; null if none is. */
  #set: Promise<void> | null = null;
  /** Whether what is written now is uploaded by the alarm that rings. */
  #isRinging = false;
  /** Whether something was written since the alarm looked whether it has to ring again. */
  #hasChanged = false;

  /** Errors: `unsupported` for a storage without alarms. */
  constructor(storage: Partial<AlarmStorage>) {
    if (typeof storage.setAlarm !== 'function') {
      throw nacreError('unsupported', 'the state of the Durable Object sets no alarms');
    }
    this.#storage = storage as AlarmStorage;
  }

  /** Something is to be uploaded. */
  wrote(): void {
    this.#hasChanged = true;
    if (this.#set === null && !this.#isRinging) {
      const set = this.#storage.setAlarm(Date.now() + AFTER_MS);
      // The next write tries again.
      set.catch(() => (this.#set = null));
      this.#set = set;
    }
  }

  /** Waits until the alarm is set, if it has to be. Errors: `unsupported` if the object's class has no `alarm`. */
  async settled(): Promise<void> {
    try {
      await this.#set;
    } catch (error) {
      throw nacreError(
        'unsupported',
        `a Durable Object with blobs needs an alarm() in its class that calls that of the database: ${String(error)}`,
        error,
      );
    }
  }

  /** The alarm rings: it uploads, and rings again if that failed, or if something `isLeft` to be uploaded. */
  async ring(upload: () => Promise<void>, isLeft: () => Promise<boolean>): Promise<void> {
    this.#set = null;
    this.#isRinging = true;
    let isDue = true;
    try {
      await upload();
      this.#hasChanged = false;
      // What is written after the look is not in its answer.
      isDue = (await isLeft()) || this.#hasChanged;
    } finally {
      this.#isRinging = false;
      if (isDue) {
        this.wrote();
      }
    }
  }
}
