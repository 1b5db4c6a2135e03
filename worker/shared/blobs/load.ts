/** Loads the script of blob stores, and opens one. */

import { NacreError, toErrorData } from '../errors.js';
import type { Around } from './encrypted-store.js';
import type { EngineBlobs } from './engine-blobs.js';
import type { openForEngine } from './open-for-engine.js';
import type { Ask, WireBlobs } from './options.js';

/** The script of blob stores, `blobs.js`. */
export interface BlobsScript {
  openForEngine: typeof openForEngine;
}

/** Opens the blob store of a database, if it has one. Errors: those of `openForEngine`, and of `load`. */
export async function loadBlobs(
  wire: WireBlobs | undefined,
  ask: Ask,
  load: () => Promise<BlobsScript>,
  around?: Around,
): Promise<EngineBlobs | undefined> {
  try {
    return wire && (await load()).openForEngine(wire, ask, around);
  } catch (error) {
    // The script has a class of errors of its own.
    throw new NacreError(toErrorData(error, 'the script of blob stores'), { cause: error });
  }
}
