import { expect, test } from 'vitest';
import { BLOCK_BYTES, IdbFile } from './idb-file.js';

/** What IndexedDB would have of a file. */
class Stored {
  blocks = new Map<number, Uint8Array<ArrayBuffer>>();
  length = 0;

  take(file: IdbFile): void {
    file.takeChanges(({ cutAt, blocks }) => {
      [...this.blocks.keys()].forEach((index) => {
        if (cutAt !== null && index >= cutAt) {
          this.blocks.delete(index);
        }
      });
      blocks.forEach(({ index, bytes }) => this.blocks.set(index, bytes.slice()));
      this.length = file.length;
    });
  }

  reopened(): IdbFile {
    const file = IdbFile.stored(1, 'log-1', this.length);
    this.blocks.forEach((bytes, index) => file.adopt(index, bytes.slice()));
    return file;
  }
}

function bytesOf(file: IdbFile): Uint8Array {
  const bytes = new Uint8Array(file.length);
  file.read(0, bytes);
  return bytes;
}

test('a file is what was written, also after it was stored and read again', () => {
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
  let model: number[] = [];
  let file = new IdbFile(1, 'log-1');
  const stored = new Stored();
  for (let step = 0; step < 400; step++) {
    const choice = random(10);
    if (choice < 5) {
      const offset = random(model.length + 1);
      const bytes = Uint8Array.from({ length: random(BLOCK_BYTES) }, () => random(256));
      file.write(offset, bytes);
      bytes.forEach((byte, i) => (model[offset + i] = byte));
    } else if (choice < 8) {
      const length = random(model.length + BLOCK_BYTES);
      file.truncate(length);
      model = Array.from({ length }, (_, i) => model[i] ?? 0);
    } else {
      stored.take(file);
      file = choice === 8 ? stored.reopened() : file;
    }
    expect(file.length).toBe(model.length);
  }
  expect(bytesOf(file)).toEqual(Uint8Array.from(model));
  stored.take(file);
  expect(bytesOf(stored.reopened())).toEqual(Uint8Array.from(model));
});

test('a small change of a large file stores one block', () => {
  const file = new IdbFile(1, 'log-1');
  file.write(0, new Uint8Array(10 * BLOCK_BYTES).fill(1));
  const changed: number[] = [];
  const take = (): void =>
    file.takeChanges(({ blocks }) => changed.push(...blocks.map(({ index }) => index)));
  take();
  expect(changed.splice(0)).toHaveLength(10);
  file.write(3 * BLOCK_BYTES + 5, Uint8Array.of(2));
  take();
  expect(changed.splice(0)).toEqual([3]);
  take();
  expect(changed).toEqual([]);
});
