// Generates TPC-H rows outside the page's thread.
//
// Each message asks for one table. Slices of TBL text are sent as soon as they are generated, and
// an empty slice ends the table. A failure is sent as a slice too, because an error thrown in an
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

const ready = init({ module_or_path: wasmUrl });
// A failure is reported when a table is asked for.
ready.catch(() => {});

self.onmessage = async ({ data }: MessageEvent<RowsRequest>) => {
  const send = (slice: RowsSlice) => self.postMessage(slice);
  try {
    await ready;
    const rows = Rows.of(data.table, data.scale);
    const total = rows?.total ?? 0;
    while (rows && rows.left > 0) send({ text: rows.take(data.slice), total });
    send({ text: '', total });
    rows?.free();
  } catch (error) {
    send({ text: '', total: 0, failure: String(error) });
  }
};
