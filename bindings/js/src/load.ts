/**
 * A bulk load: rows that are sent piece by piece, and become visible together at the end. While the
 * engine takes one piece, the next is made, and no more.
 */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import { MAIN_SESSION } from '../../../worker/shared/protocol.js';
import type { OnDuplicate } from '../../../worker/shared/wire.js';
import { Aborting } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';

/** Options of `db.insertRows` and `db.insertArrow`. */
export interface InsertOptions extends CallOptions {
  /**
   * What to do with a row whose key is in the table already: fail and insert nothing, `skip` the
   * new row, or `replace` the old one.
   * @default 'error'
   */
  onDuplicate?: OnDuplicate;
  /**
   * Called after each piece with the number of rows, or bytes of Arrow, that were taken so far, and
   * the part of all that they are; `undefined` where the end is not known, as of a stream.
   */
  onProgress?: (done: number, fraction: number | undefined) => void;
}

/** Takes one piece of rows; answers when it may be followed by another. */
export type Take = (
  method: 'loadArrow' | 'loadColumns',
  size: number,
  ...piece: unknown[]
) => Promise<void>;

/** Number of the newest load of this thread. */
let lastLoad = 0;

/** Runs a load of `total` rows or bytes, if that is known, whose pieces `send` makes. Answers the number of rows inserted or replaced. */
export async function load(
  { transport }: Client,
  table: string,
  options: InsertOptions,
  total: number | undefined,
  send: (take: Take) => Promise<void>,
): Promise<number> {
  if (typeof table !== 'string') {
    throw nacreError('type', 'the name of a table must be a string');
  }
  const { onDuplicate = 'error', onProgress } = options;
  const aborting = new Aborting(options.signal, 'the load was cancelled');
  aborting.check('the call was cancelled before it started');
  const number = ++lastLoad;
  let last = transport.call('load', MAIN_SESSION, number, table, onDuplicate);
  // The first row may be long in coming.
  last.catch(() => {});
  let done = 0;
  const take: Take = async (method, size, ...piece) => {
    await aborting.or(last);
    aborting.check();
    last = transport.call(method, ...([number, ...piece] as never)).then(() => {
      done += size;
      onProgress?.(done, total && Math.min(done / total, 1));
    });
    // A failure is reported by the next piece, or at the end.
    last.catch(() => {});
  };
  try {
    // Where the rows come from may stall.
    await aborting.or(send(take));
    await aborting.or(last);
    aborting.check();
  } catch (error) {
    last.catch(() => {});
    // The error that ended the load is the one to report.
    void transport.call('dropLoad', number).catch(() => {});
    throw error;
  }
  return finish(transport, number, aborting);
}

/** Publishes all rows. If the signal aborts before, nothing is inserted; later it has no effect. */
async function finish(
  transport: Client['transport'],
  number: number,
  aborting: Aborting,
): Promise<number> {
  const stop = aborting.on(() => void transport.call('dropLoad', number).catch(() => {}));
  try {
    return await transport.call('finishLoad', number);
  } catch (error) {
    if (error instanceof NacreError && error.kind === 'cancelled') {
      aborting.check();
    }
    throw error;
  } finally {
    stop();
  }
}
