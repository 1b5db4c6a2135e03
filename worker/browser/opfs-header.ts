/**
 * The first sector of every physical file of an OPFS pool, which says which logical file it holds.
 *
 * Layout of one copy, little-endian; the sector holds two equal copies, at 0 and at 2048:
 *
 *     0  8 bytes  magic "NACREPF\x01"
 *     8  u32      version, 1
 *    12  u32      flags: bit 0 = holds a file
 *    16  f64      generation: increases with every header written in the pool
 *    24  u32      length of the name
 *    28  64 bytes name, ASCII, zero-filled
 *    92  32 bytes zero
 *   124  u32      CRC-32 of bytes 0 to 124
 *
 * A header is valid if either copy is; of two valid copies the one with the higher generation
 * counts. A sector without a valid copy is free: it was torn while a file was created or removed. A
 * sector with a copy of another version is not free: magic and CRC have the same place in every
 * version.
 */

import { nacreError } from '../shared/errors.js';

/** Bytes before the data of a physical file. */
export const HEADER_BYTES = 4096;
const COPY_BYTES = 128;
const COPIES = [0, 2048];
const MAGIC = [0x4e, 0x41, 0x43, 0x52, 0x45, 0x50, 0x46, 0x01];
const VERSION = 1;
const MAX_NAME_BYTES = 64;

/** The content of a header. */
export interface Header {
  /** Name of the logical file; null if the physical file is free. */
  name: string | null;
  generation: number;
}

/** Whether a name can be a logical file's. */
export function isFileName(name: string): boolean {
  return name.length > 0 && name.length <= MAX_NAME_BYTES && /^[A-Za-z0-9._-]+$/.test(name);
}

/** Encodes a header as a sector. */
export function encodeHeader(header: Header): Uint8Array {
  const sector = new Uint8Array(HEADER_BYTES);
  const view = new DataView(sector.buffer);
  const name = header.name ?? '';
  sector.set(MAGIC, 0);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, header.name === null ? 0 : 1, true);
  view.setFloat64(16, header.generation, true);
  view.setUint32(24, name.length, true);
  for (let i = 0; i < name.length; i++) {
    sector[28 + i] = name.charCodeAt(i);
  }
  view.setUint32(124, crc32(sector.subarray(0, 124)), true);
  sector.copyWithin(COPIES[1]!, 0, COPY_BYTES);
  return sector;
}

/**
 * Decodes the header in a sector; null without a valid copy. Throws `unsupported` for another
 * version.
 */
export function decodeHeader(sector: Uint8Array): Header | null {
  let newest: Header | null = null;
  for (const start of COPIES) {
    const header = decodeCopy(sector.subarray(start, start + COPY_BYTES));
    if (header !== null && (newest === null || header.generation > newest.generation)) {
      newest = header;
    }
  }
  return newest;
}

function decodeCopy(copy: Uint8Array): Header | null {
  if (copy.length < COPY_BYTES || MAGIC.some((byte, i) => copy[i] !== byte)) {
    return null;
  }
  const view = new DataView(copy.buffer, copy.byteOffset, COPY_BYTES);
  if (view.getUint32(124, true) !== crc32(copy.subarray(0, 124))) {
    return null;
  }
  const version = view.getUint32(8, true);
  if (version !== VERSION) {
    throw nacreError(
      'unsupported',
      `the database's files have version ${version}, and this nacredb reads version ${VERSION}: use a newer nacredb`,
    );
  }
  const generation = view.getFloat64(16, true);
  if ((view.getUint32(12, true) & 1) === 0) {
    return { name: null, generation };
  }
  const length = view.getUint32(24, true);
  if (length > MAX_NAME_BYTES) {
    return null;
  }
  const name = String.fromCharCode(...copy.subarray(28, 28 + length));
  return isFileName(name) ? { name, generation } : null;
}

/** CRC-32 (polynomial 0xEDB88320, as in gzip). */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
  }
  return (crc ^ 0xffffffff) >>> 0;
}
