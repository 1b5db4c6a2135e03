/**
 * The files of a database as IndexedDB has them: `files` has name and length by a file's number, and
 * `blocks` its bytes by that number and the number of the block.
 */

import { IdbFile } from './idb-file.js';

const PREFIX = 'nacredb:';
const VERSION = 1;
const FILES = 'files';
const BLOCKS = 'blocks';

/** How a file is described. */
interface Described {
  name: string;
  length: number;
}

/** A database of IndexedDB. */
export class Idb {
  readonly #db: IDBDatabase;

  private constructor(db: IDBDatabase) {
    this.#db = db;
  }

  /** Whether there is one of this name. */
  static async has(name: string): Promise<boolean> {
    const all = await indexedDB.databases();
    return all.some((each) => each.name === `${PREFIX}${name}`);
  }

  static async open(name: string): Promise<Idb> {
    const request = indexedDB.open(`${PREFIX}${name}`, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(FILES);
      request.result.createObjectStore(BLOCKS);
    };
    return new Idb(await answered(request));
  }

  /** Reads all files into memory. */
  async files(): Promise<IdbFile[]> {
    const reading = this.#db.transaction([FILES, BLOCKS], 'readonly');
    const files = reading.objectStore(FILES);
    const [ids, described] = await Promise.all([
      answered(files.getAllKeys()) as Promise<number[]>,
      answered(files.getAll()) as Promise<Described[]>,
    ]);
    return Promise.all(
      described.map(async ({ name, length }, i) => {
        const file = IdbFile.stored(ids[i]!, name, length);
        const range = blocksOf(file.id, 0);
        const blocks = reading.objectStore(BLOCKS);
        const [keys, bytes] = await Promise.all([
          answered(blocks.getAllKeys(range)) as Promise<[number, number][]>,
          answered(blocks.getAll(range)) as Promise<Uint8Array<ArrayBuffer>[]>,
        ]);
        keys.forEach(([, index], at) => file.adopt(index, bytes[at]!));
        return file;
      }),
    );
  }

  /** Stores the changes of files, and removes others: all of it, or nothing. */
  store(files: readonly IdbFile[], removed: readonly IdbFile[]): Promise<void> {
    const writing = this.#db.transaction([FILES, BLOCKS], 'readwrite', { durability: 'strict' });
    const [described, blocks] = [writing.objectStore(FILES), writing.objectStore(BLOCKS)];
    for (const { id } of removed) {
      described.delete(id);
      blocks.delete(blocksOf(id, 0));
    }
    for (const file of files) {
      // What is put is copied at once, so later writes do not change it.
      file.takeChanges(({ cutAt, blocks: changed }) => {
        described.put({ name: file.name, length: file.length } satisfies Described, file.id);
        if (cutAt !== null) {
          blocks.delete(blocksOf(file.id, cutAt));
        }
        changed.forEach(({ index, bytes }) => blocks.put(bytes, [file.id, index]));
      });
    }
    writing.commit();
    return new Promise((resolve, reject) => {
      writing.oncomplete = () => resolve();
      writing.onabort = () => reject(writing.error ?? new DOMException('aborted', 'AbortError'));
    });
  }

  /** Closes it once its transactions have ended. */
  close(): void {
    this.#db.close();
  }
}

/** The keys of a file's blocks from one on. */
function blocksOf(id: number, from: number): IDBKeyRange {
  return IDBKeyRange.bound([id, from], [id, Infinity]);
}

function answered<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error as DOMException);
  });
}
