/** A file of an IndexedDB store: blocks of bytes in memory, and which of them are not stored yet. */

/** Size of a block, which is written whole. A commit changes the end of the log: one block or two. */
export const BLOCK_BYTES: number = 16 * 1024;

/** A file in memory. */
export class IdbFile {
  readonly id: number;
  readonly name: string;
  /** Whether anything of it is stored. */
  isStored = false;
  #length = 0;
  /** A block that was never written is missing: it has zeroes. */
  #blocks: (Uint8Array<ArrayBuffer> | undefined)[] = [];
  #dirty = new Set<number>();
  /** Whether its name and length are stored. */
  #isDescribed = false;
  /** Number of stored blocks to keep, after it was shortened; null if it was not. */
  #cutAt: number | null = null;

  constructor(id: number, name: string) {
    this.id = id;
    this.name = name;
  }

  /** A file as it is stored. */
  static stored(id: number, name: string, length: number): IdbFile {
    const file = new IdbFile(id, name);
    file.#length = length;
    file.isStored = true;
    file.#isDescribed = true;
    return file;
  }

  /** Takes a block that was stored. */
  adopt(index: number, block: Uint8Array<ArrayBuffer>): void {
    this.#blocks[index] = block;
  }

  get length(): number {
    return this.#length;
  }

  /** Fills a buffer with bytes that must be there. */
  read(offset: number, buffer: Uint8Array): void {
    this.#pieces(offset, buffer.length, (index, from, to, at) => {
      const block = this.#blocks[index];
      const part = buffer.subarray(at, at + to - from);
      if (block === undefined) {
        part.fill(0);
      } else {
        part.set(block.subarray(from, to));
      }
    });
  }

  write(offset: number, bytes: Uint8Array): void {
    this.#pieces(offset, bytes.length, (index, from, to, at) => {
      this.#block(index).set(bytes.subarray(at, at + to - from), from);
      this.#dirty.add(index);
    });
    if (offset + bytes.length > this.#length) {
      this.#length = offset + bytes.length;
      this.#isDescribed = false;
    }
  }

  truncate(length: number): void {
    const kept = Math.ceil(length / BLOCK_BYTES);
    if (length < this.#length) {
      this.#blocks.length = Math.min(this.#blocks.length, kept);
      this.#cutAt = Math.min(this.#cutAt ?? kept, kept);
      this.#dirty.forEach((index) => index >= kept && this.#dirty.delete(index));
      const within = length % BLOCK_BYTES;
      if (within > 0 && this.#blocks[kept - 1] !== undefined) {
        this.#block(kept - 1).fill(0, within);
        this.#dirty.add(kept - 1);
      }
    }
    this.#length = length;
    this.#isDescribed = false;
  }

  /** Gives what has changed to a function that stores it, and takes it for stored. */
  takeChanges(store: (changes: Changes) => void): void {
    if (this.#isDescribed && this.#dirty.size === 0 && this.#cutAt === null) {
      return;
    }
    const blocks = [...this.#dirty].map((index) => ({ index, bytes: this.#blocks[index]! }));
    store({ cutAt: this.#cutAt, blocks });
    this.#dirty.clear();
    this.#cutAt = null;
    this.#isDescribed = true;
    this.isStored = true;
  }

  #block(index: number): Uint8Array<ArrayBuffer> {
    return (this.#blocks[index] ??= new Uint8Array(BLOCK_BYTES));
  }

  /** The parts of a range that lie in one block each. */
  #pieces(
    offset: number,
    length: number,
    each: (index: number, from: number, to: number, at: number) => void,
  ): void {
    for (let at = 0; at < length;) {
      const index = Math.floor((offset + at) / BLOCK_BYTES);
      const from = (offset + at) % BLOCK_BYTES;
      const to = Math.min(BLOCK_BYTES, from + length - at);
      each(index, from, to, at);
      at += to - from;
    }
  }
}

/** What has changed in a file since it was stored. */
export interface Changes {
  /** Number of stored blocks to keep; null keeps all. */
  cutAt: number | null;
  blocks: { index: number; bytes: Uint8Array<ArrayBuffer> }[];
}
