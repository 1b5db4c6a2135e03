/**
 * A worker that lets tests drive an OpfsStore: synchronous access handles exist in workers only.
 * Takes `[method, ...args]`, answers `{ result }` or `{ error }`. `raw` writes a byte into a physical file.
 */

import { NacreError } from '../shared/errors.js';
import { OpfsStore } from './opfs-store.js';

let store: OpfsStore | null = null;

const extra: Record<string, (...args: never[]) => unknown> = {
  start: async (name: string) => {
    store = await OpfsStore.open(name);
  },
  put: (file: number, text: string) => store!.write(file, 0, new TextEncoder().encode(text)),
  get: (file: number) => {
    const bytes = new Uint8Array(store!.len(file));
    store!.read(file, 0, bytes);
    return new TextDecoder().decode(bytes);
  },
  /** Changes bytes of the physical file that holds this text somewhere. */
  damage: async (name: string, text: string, at: number[]) => {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle(name);
    for await (const entry of directory.keys()) {
      const file = await directory.getFileHandle(entry);
      const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
      if (!new TextDecoder('latin1').decode(bytes).includes(text)) {
        continue;
      }
      at.forEach((byte) => (bytes[byte]! ^= 0xff));
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
    }
  },
};

globalThis.onmessage = async (event: MessageEvent<[string, ...never[]]>) => {
  const [method, ...args] = event.data;
  try {
    const run = extra[method] ?? (store as never as typeof extra)[method]!.bind(store);
    globalThis.postMessage({ result: await run(...args) });
  } catch (error) {
    const kind = error instanceof NacreError ? error.kind : 'not ours';
    globalThis.postMessage({ error: { kind, message: String(error) } });
  }
};
