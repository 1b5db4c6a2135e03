/** Statements that a caller can cancel, or whose progress it follows. */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { StatementOptions } from './options.js';
import type { Transport } from './transport.js';

/** Time between two reports of progress, in milliseconds. */
const REPORT_MS = 100;

/** The newest ticket of this thread. */
let lastTicket = 0;

/** Whether a statement needs a ticket for what its options ask for. */
export function needsTicket(options: StatementOptions | undefined): options is StatementOptions {
  return options?.signal !== undefined || options?.onProgress !== undefined;
}

/**
 * Runs a statement as its options ask for. It settles once the engine has ended the statement: an
 * error of kind `cancelled` means that the statement changed nothing.
 */
export async function withTicket<T>(
  transport: Transport,
  { signal, onProgress }: StatementOptions,
  call: (ticket: number) => Promise<T>,
): Promise<T> {
  const ticket = ++lastTicket;
  const cancel = (): void => void transport.call('cancel', ticket).catch(() => {});
  let failure: { error: unknown } | null = null;
  const report = (error: unknown): void => {
    failure = { error };
    cancel();
  };
  signal?.addEventListener('abort', cancel);
  const stop = onProgress && reporting(transport, ticket, onProgress, report);
  try {
    return await call(ticket);
  } catch (error) {
    const isCancelled = error instanceof NacreError && error.kind === 'cancelled';
    if (isCancelled && failure !== null) {
      throw (failure as { error: unknown }).error;
    }
    throw isCancelled && signal?.aborted
      ? nacreError('cancelled', error.message, signal.reason)
      : error;
  } finally {
    stop?.();
    signal?.removeEventListener('abort', cancel);
  }
}

/** Reports progress now and then, until the returned function is called. */
function reporting(
  transport: Transport,
  ticket: number,
  onProgress: NonNullable<StatementOptions['onProgress']>,
  failed: (error: unknown) => void,
): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let stopped = false;
  const ask = async (): Promise<void> => {
    const progress = await transport.call('progress', ticket).catch(() => null);
    if (stopped) {
      return;
    }
    try {
      if (progress !== null) {
        onProgress(progress.rows, Math.min(progress.rows / progress.total, 1));
      }
      again();
    } catch (error) {
      failed(error);
    }
  };
  const again = (): void => {
    timer = setTimeout(() => void ask(), REPORT_MS);
  };
  again();
  return () => {
    stopped = true;
    clearTimeout(timer!);
  };
}
