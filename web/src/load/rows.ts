// The page's side of `rows.worker.ts`: yields a table as slices of TBL lines.
//
// The worker generates one slice ahead and waits, so that a slow reader does not fill the memory.

import RowsWorker from './rows.worker?worker';
import type { RowsMessage, RowsRequest, RowsSlice } from './rows.worker';

/** Starts the generator's worker. `close` terminates it, which frees its memory. */
export function rowSource(): { slices: typeof slices; close: () => void } {
  const worker = new RowsWorker();
  const send = (message: RowsMessage) => worker.postMessage(message);
  let closed = false;
  let stop = () => {};

  async function* slices(request: RowsRequest): AsyncGenerator<RowsSlice> {
    const waiting: RowsSlice[] = [];
    let wake = () => {};
    let failure: Error | undefined;
    const fail = (message: string) => {
      failure = new Error(message);
      wake();
    };
    worker.onmessage = ({ data }: MessageEvent<RowsSlice>) => {
      waiting.push(data);
      wake();
    };
    worker.onerror = (event) =>
      fail(`the data generator failed: ${event.message || 'its worker could not be loaded'}`);
    stop = () => fail('the data generator was stopped');
    // A worker that was terminated between two tables answers nothing.
    if (closed) stop();
    send(request);
    for (;;) {
      if (failure) throw failure;
      const slice = waiting.shift();
      if (!slice) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      if (slice.failure) throw new Error(`the data generator failed: ${slice.failure}`);
      if (slice.text === '') return;
      send('more');
      yield slice;
    }
  }

  const close = () => {
    closed = true;
    worker.terminate();
    stop();
  };
  return { slices, close };
}
