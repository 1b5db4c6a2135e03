// The page's side of `rows.worker.ts`: yields a table as slices of TBL lines.

import RowsWorker from './rows.worker?worker';
import type { RowsRequest, RowsSlice } from './rows.worker';

/** Starts the generator's worker. `close` terminates it, which frees its memory. */
export function rowSource(): { slices: typeof slices; close: () => void } {
  const worker = new RowsWorker();

  async function* slices(request: RowsRequest): AsyncGenerator<RowsSlice> {
    const waiting: RowsSlice[] = [];
    let wake = () => {};
    let failure: Error | undefined;
    worker.onmessage = ({ data }: MessageEvent<RowsSlice>) => {
      waiting.push(data);
      wake();
    };
    worker.onerror = (event) => {
      failure = new Error(
        `the data generator failed: ${event.message || 'its worker could not be loaded'}`,
      );
      wake();
    };
    worker.postMessage(request);
    for (;;) {
      if (failure) throw failure;
      const slice = waiting.shift();
      if (!slice) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      if (slice.failure) throw new Error(`the data generator failed: ${slice.failure}`);
      if (slice.text === '') return;
      yield slice;
    }
  }

  return { slices, close: () => worker.terminate() };
}
