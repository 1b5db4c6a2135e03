// Generates TPC-H rows outside the page's thread.
//
// A request asks for one table. Slices of TBL text are generated a little ahead of the page, and an
// empty slice ends the table. A failure is sent as a slice too, because an error thrown in an
// asynchronous handler would be lost.

import init, { Rows } from '../generated/nacre_web_tpch.js';
import wasmUrl from '../generated/nacre_web_tpch_bg.wasm?url';

/** Asks for a table. */
export interface RowsRequest {
  table: string;
  scale: number;
  slice: number;
}

/** Some rows of a table. */
export interface RowsSlice {
  text: string;
  total: number;
  /** The reason if there are no rows. */
  failure?: string;
}

/** To the worker: a table to generate, then one `more` for each slice that was taken. */
export type RowsMessage = RowsRequest | 'more';

/** Slices that wait for the page. */
const AHEAD = 2;

const ready = init({ module_or_path: wasmUrl });
// A failure is reported when a table is asked for.
ready.catch(() => {});

let credit = 0;
let wake = () => {};

self.onmessage = ({ data }: MessageEvent<RowsMessage>) => {
  if (data === 'more') {
    credit += 1;
    wake();
  } else {
    credit = AHEAD;
    void generate(data);
  }
};

async function generate({ table, scale, slice }: RowsRequest): Promise<void> {
  const send = (message: RowsSlice) => self.postMessage(message);
  try {
    await ready;
    const rows = Rows.of(table, scale);
    const total = rows?.total ?? 0;
    while (rows && rows.left > 0) {
      while (credit === 0) await new Promise<void>((resolve) => (wake = resolve));
      credit -= 1;
      send({ text: rows.take(slice), total });
    }
    send({ text: '', total });
    rows?.free();
  } catch (error) {
    send({ text: '', total: 0, failure: String(error) });
  }
}
