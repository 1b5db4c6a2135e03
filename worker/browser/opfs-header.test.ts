import { expect, test } from 'vitest';
import { crc32, decodeHeader, encodeHeader, isFileName } from './opfs-header.js';

test('a header reads back', () => {
  const name = 'segment-000000000001.ncr';
  expect(decodeHeader(encodeHeader({ name, generation: 7 }))).toEqual({ name, generation: 7 });
  expect(decodeHeader(encodeHeader({ name: null, generation: 8 }))).toEqual({
    name: null,
    generation: 8,
  });
  const longest = 'x'.repeat(64);
  expect(decodeHeader(encodeHeader({ name: longest, generation: 0 }))?.name).toBe(longest);
});

test('a damaged byte in one copy is survived, in both copies detected', () => {
  const header = { name: 'log-1', generation: 3 };
  for (let byte = 0; byte < 128; byte++) {
    const sector = encodeHeader(header);
    sector[byte]! ^= 0x41;
    expect(decodeHeader(sector)).toEqual(header);
    sector[2048 + byte]! ^= 0x41;
    expect(decodeHeader(sector)).toBeNull();
  }
});

test('of two copies the newer counts', () => {
  const sector = encodeHeader({ name: 'old', generation: 1 });
  sector.set(encodeHeader({ name: 'new', generation: 2 }).subarray(0, 128));
  expect(decodeHeader(sector)?.name).toBe('new');
});

test('an intact header of another version is unsupported', () => {
  for (const start of [0, 2048]) {
    const sector = encodeHeader({ name: 'log-1', generation: 3 });
    sector[start + 8] = 2;
    expect(decodeHeader(sector)?.name).toBe('log-1');
    const crc = crc32(sector.subarray(start, start + 124));
    new DataView(sector.buffer).setUint32(start + 124, crc, true);
    expect(() => decodeHeader(sector)).toThrow(expect.objectContaining({ kind: 'unsupported' }));
  }
});

test('empty and random sectors have no header', () => {
  expect(decodeHeader(new Uint8Array(0))).toBeNull();
  expect(decodeHeader(new Uint8Array(4096))).toBeNull();
  expect(decodeHeader(new Uint8Array(4096).fill(0xff))).toBeNull();
});

test('names are restricted to what the engine uses', () => {
  expect(['a', 'LOG.1_2-3', 'x'.repeat(64)].every(isFileName)).toBe(true);
  expect(['', 'a/b', 'ä', 'a b', 'x'.repeat(65)].some(isFileName)).toBe(false);
});
