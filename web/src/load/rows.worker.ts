// Makes TPC-H rows off the page's thread: the generator's module lives here and nowhere else.
//
// One message in is one table to make; slices of TBL text go out as fast as they are made, and an empty slice ends it.
// A failure is such a slice too: what is thrown in an asynchronous handler reaches nobody.

import init, { Rows } from '../generated/nacre_web_tpch.js';
import wasmUrl from '../generated/nacre_web_tpch_bg.wasm?url';

/** Asks for a table. */
export interface RowsRequest {
  table: string;
  scale: number;
  slice: number;
}

/** Some of its rows. */
export interface RowsSlice {
  text: string;
  total: number;
  /** Why there are none. */
  failure?: string;
}

const ready = init({ module_or_path: wasmUrl });
// Should it fail, that is told when a table is asked for.
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
