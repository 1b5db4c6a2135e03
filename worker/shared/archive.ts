/**
 * A database's files in one: a tar archive (POSIX ustar) of plain files, which unpacks to a folder
 * that every host can open.
 */

import { nacreError, type NacreError } from './errors.js';

/** A file with its whole content. */
export interface ArchivedFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Unit of an archive: headers have this size, and contents are padded to it. */
const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const SIZE_AT = 124;
const CHECKSUM_AT = 148;
const TYPE_AT = 156;
const MAGIC_AT = 257;
const MAGIC = 'ustar\u000000';
/** Type of a plain file. */
const PLAIN = '0';

/** Packs files one by one, so that no two contents are in memory at once where blobs are not. */
export function archiveOf(files: Iterable<ArchivedFile>): Blob {
  let archive = new Blob([]);
  for (const { name, bytes } of files) {
    const padding = new Uint8Array(paddingOf(bytes.length));
    archive = new Blob([archive, headerOf(name, bytes.length), bytes, padding]);
  }
  return new Blob([archive, new Uint8Array(2 * BLOCK_BYTES)], { type: 'application/x-tar' });
}

/** Unpacks an archive. Fails with `corrupt` unless it is complete. */
export async function filesOf(archive: Blob): Promise<ArchivedFile[]> {
  const files: ArchivedFile[] = [];
  for (let at = 0; ;) {
    const header = await read(archive, at, BLOCK_BYTES);
    if (header.every((byte) => byte === 0)) {
      return files;
    }
    const { name, size } = parsed(header);
    at += BLOCK_BYTES;
    files.push({ name, bytes: await read(archive, at, size) });
    at += size + paddingOf(size);
  }
}

function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

function headerOf(name: string, size: number): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK_BYTES);
  const put = (text: string, at: number): void => header.set(new TextEncoder().encode(text), at);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  put(name, 0);
  put(octal(0o644, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), SIZE_AT);
  // No time: an archive depends on the files only.
  put(octal(0, 11), 136);
  put(PLAIN, TYPE_AT);
  put(MAGIC, MAGIC_AT);
  put(`${octal(checksumOf(header), 6)}\u0000 `, CHECKSUM_AT);
  return header;
}

/** Sum of a header's bytes, with spaces in place of the sum itself. */
function checksumOf(header: Uint8Array): number {
  return header.reduce((sum, byte, at) => {
    const isSum = at >= CHECKSUM_AT && at < CHECKSUM_AT + 8;
    return sum + (isSum ? 0x20 : byte);
  }, 0);
}

function parsed(header: Uint8Array): { name: string; size: number } {
  const text = (at: number, length: number): string =>
    new TextDecoder().decode(header.subarray(at, at + length)).split('\u0000')[0]!;
  const size = parseInt(text(SIZE_AT, 12), 8);
  const isSound =
    text(MAGIC_AT, 5) === 'ustar' && parseInt(text(CHECKSUM_AT, 8), 8) === checksumOf(header);
  if (!isSound || !Number.isSafeInteger(size)) {
    throw corrupt('it is not a tar archive');
  }
  if (text(TYPE_AT, 1) !== PLAIN) {
    throw corrupt('it has something other than plain files');
  }
  return { name: text(0, NAME_BYTES), size };
}

async function read(archive: Blob, at: number, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(await archive.slice(at, at + size).arrayBuffer());
  if (bytes.length < size) {
    throw corrupt('it ends early');
  }
  return bytes;
}

function corrupt(why: string): NacreError {
  return nacreError('corrupt', `the file is no exported database: ${why}`);
}
