/**
 * A worker in which tests drive an OpfsStore: synchronous access handles exist in workers only. It
 * takes `[method, ...args]` and answers `{ result }` or `{ error }`.
 */

import { NacreError } from '../shared/errors.js';
import { crc32, decodeHeader, encodeHeader, HEADER_BYTES } from './opfs-header.js';
import { OpfsStore } from './opfs-store.js';

interface Opens {
  createSyncAccessHandle(): Promise<{ close(): void }>;
}

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
  /** Creates, writes and syncs files, and prepares more in between. */
  fill: async (prefix: string, from: number, to: number) => {
    for (let at = from; at < to; at++) {
      const name = `${prefix}${at}`;
      const file = store!.create(name);
      store!.write(file, 0, new TextEncoder().encode(`data of ${name}`));
      store!.sync(file);
      await store!.prepare();
    }
  },
  /** The files, of those that `fill` created, whose bytes are not what it wrote. */
  wrong: (prefix: string, from: number, to: number) => {
    const names = Array.from({ length: to - from }, (_, at) => `${prefix}${from + at}`);
    return names.filter((name) => extra['get']!(store!.open(name) as never) !== `data of ${name}`);
  },
  /** The number of open handles of a database's files. */
  handles: async (name: string) => {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle(name);
    let open = 0;
    for await (const entry of directory.keys()) {
      try {
        const file = await directory.getFileHandle(entry);
        (await (file as never as Opens).createSyncAccessHandle()).close();
      } catch {
        open++;
      }
    }
    return open;
  },
  /** The number of physical files of a database. */
  entries: async (name: string) => {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle(name);
    let count = 0;
    for await (const _ of directory.keys()) {
      count++;
    }
    return count;
  },
  /** Flips bytes of the physical file that contains this text. */
  damage: (name: string, text: string, at: number[]) =>
    change(name, text, (bytes) => at.forEach((byte) => (bytes[byte]! ^= 0xff))),
  /** Sets the version in the header of the physical file that contains this text. */
  version: (name: string, text: string, version: number) =>
    change(name, text, (bytes) => {
      const view = new DataView(bytes.buffer);
      view.setUint32(8, version, true);
      view.setUint32(124, crc32(bytes.subarray(0, 124)), true);
      bytes.copyWithin(2048, 0, 128);
    }),
  /** Sets the name in the header of the physical file that contains this text. */
  rename: (name: string, text: string, other: string) =>
    change(name, text, (bytes) => {
      const { generation } = decodeHeader(bytes.subarray(0, HEADER_BYTES))!;
      bytes.set(encodeHeader({ name: other, generation }));
    }),
};

async function change(
  name: string,
  text: string,
  work: (bytes: Uint8Array) => void,
): Promise<void> {
  const root = await navigator.storage.getDirectory();
  const directory = await root.getDirectoryHandle(name);
  for await (const entry of directory.keys()) {
    const file = await directory.getFileHandle(entry);
    const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
    if (!new TextDecoder('latin1').decode(bytes).includes(text)) {
      continue;
    }
    work(bytes);
    const writable = await file.createWritable();
    await writable.write(bytes);
    await writable.close();
    return;
  }
  throw new Error(`no file contains ${text}`);
}

globalThis.onmessage = async (event: MessageEvent<[string, ...never[]]>) => {
  const [method, ...args] = event.data;
  try {
    const run = extra[method] ?? (store as never as typeof extra)[method]!.bind(store);
    globalThis.postMessage({ result: await run(...args) });
  } catch (error) {
    const kind = error instanceof NacreError ? error.kind : 'no NacreError';
    globalThis.postMessage({ error: { kind, message: String(error) } });
  }
};
