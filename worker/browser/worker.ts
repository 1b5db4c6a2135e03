/**
 * The dedicated worker: it holds the engine and the database's files, and answers the page's calls.
 * The first call is `open`; calls that arrive while it runs wait for it.
 */

import { Connection } from '../shared/connection.js';
import { loadFromModule, loadFromUrl } from '../shared/engine.js';
import { nacreError, toErrorData } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { transferables, type Call, type OpenRequest, type Reply } from '../shared/protocol.js';
import { OpfsStore } from './opfs-store.js';

/** The part of a dedicated worker's global scope that is used; TypeScript knows pages or workers, not both. */
interface Scope {
  onmessage: ((event: MessageEvent<Call[]>) => void) | null;
  postMessage(replies: Reply[], transfer: Transferable[]): void;
}

const scope = globalThis as unknown as Scope;

let opening: Promise<Connection> | null = null;
let connection: Connection | null = null;

async function open(request: OpenRequest): Promise<Connection> {
  // Both take a while and neither needs the other.
  const loaded = request.wasmModule
    ? loadFromModule(request.wasmModule)
    : loadFromUrl(request.wasmUrl ?? new URL('./nacre_bg.wasm', import.meta.url).href);
  const [store] = await Promise.all([openStore(request.url), loaded]);
  connection = await Connection.open(store, request.options);
  return connection;
}

async function openStore(url: string): Promise<OwnedStore | null> {
  if (url === 'memory://') {
    return null;
  }
  if (url.startsWith('opfs://')) {
    return OpfsStore.open(url.slice('opfs://'.length));
  }
  throw nacreError(
    'unsupported',
    `'${url}' is not a place a browser can keep a database: use opfs://name or memory://`,
  );
}

function dispatch({ method, args }: Call): unknown {
  if (method === 'open') {
    opening ??= open(args[0] as OpenRequest);
    return opening.then(() => undefined);
  }
  if (connection !== null) {
    return connection.call(method, args);
  }
  if (opening === null) {
    throw nacreError('closed', 'the database is not open');
  }
  return opening.then((opened) => opened.call(method, args));
}

/** Answers that are there at once leave together; the others as they come, those of one task together. */
let ready: Reply[] = [];
let buffers: ArrayBuffer[] = [];

function answer(id: number, result: unknown): void {
  if (ready.length === 0) {
    queueMicrotask(send);
  }
  ready.push({ id, result });
  buffers.push(...transferables(result));
}

function fail(id: number, error: unknown): void {
  if (ready.length === 0) {
    queueMicrotask(send);
  }
  ready.push({ id, error: toErrorData(error) });
}

function send(): void {
  const replies = ready;
  const transfer = buffers;
  ready = [];
  buffers = [];
  scope.postMessage(replies, transfer);
}

scope.onmessage = (event) => {
  for (const call of event.data) {
    try {
      const result = dispatch(call);
      if (result instanceof Promise) {
        result.then(
          (value) => answer(call.id, value),
          (error: unknown) => fail(call.id, error),
        );
      } else {
        answer(call.id, result);
      }
    } catch (error) {
      fail(call.id, error);
    }
  }
};
