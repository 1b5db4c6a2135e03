/** The database of a Durable Object, or of a Worker. */

import type { Alarm } from '../../../worker/edge/alarm.js';
import type { Connection } from '../../../worker/shared/connection.js';
import { NacreError } from '../../../worker/shared/errors.js';
import type { AnySchema } from './schema.js';
import { ThreadDatabase } from './thread-database.js';
import type { TypeOptions } from './types.js';

/** A database made by `connect` at the edge. */
export class EdgeDatabase<S extends object = AnySchema> extends ThreadDatabase<S> {
  readonly #alarm: Alarm | undefined;

  /** @internal */
  constructor(connection: Connection, types: TypeOptions, alarm: Alarm | undefined) {
    super(connection, types);
    this.#alarm = alarm;
  }

  /**
   * To be called by `alarm()` of a Durable Object whose database has blobs. What was committed is uploaded
   * within about a second; an object that leaves memory before comes back for it by its alarm, which this
   * uploads, and sets again if the blob store is away. Without `state` and `blobs` it does nothing.
   *
   * An object has one alarm, which the database sets half a minute after a write. For an application with
   * an alarm of its own, `state` may be `{ storage: { sql, setAlarm } }` with its own function, which is told
   * when to call this.
   *
   * Errors: those of `upload`, except `unavailable`.
   */
  async alarm(): Promise<void> {
    this.mustBeOpen();
    try {
      await this.#alarm?.ring(
        () => this.upload(),
        async () => {
          const lag = await this.lag();
          return lag !== null && lag.uploaded < lag.position;
        },
      );
    } catch (error) {
      if (!(error instanceof NacreError && error.kind === 'unavailable')) {
        throw error;
      }
    }
  }
}
