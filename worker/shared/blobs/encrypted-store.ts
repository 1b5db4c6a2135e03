/**
 * A blob store whose blobs are encrypted with a key of the application before they leave the process.
 * FORMAT.md describes the format: blocks that can be read without the others, by AES-256-GCM, with a key
 * that is derived from the application's and the name of the blob. Native stores have the same one.
 */

import { NacreError, nacreError } from '../errors.js';
import { type BlobInfo, type BlobStore, type WriteIf, checkBlobName } from './blob-store.js';

/** A store that also reads ranges which go beyond the end of a blob. */
export interface SourceStore extends BlobStore {
  /** Reads the bytes from `start` up to `end`, and fewer if the blob ends before. */
  readTo(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>;
  /** Counts requests, of which an invocation of a Worker may make a fixed number: also those of a cache before it. */
  readonly requests: { made: number };
}

/** Puts something between a store and its encryption. */
export type Around = (source: SourceStore) => SourceStore;

/** An encrypted blob begins with this, `NACRESEA`, and the number of its key. */
const MAGIC = Uint8Array.of(78, 65, 67, 82, 69, 83, 69, 65);
const HEAD = 16;
const BLOCK = 8192;
const NONCE = 12;
const TAG = 16;
/** The length of an encrypted block. */
const SEALED = NONCE + BLOCK + TAG;
/** What a key must be. */
export const KEY = '32 bytes, or a CryptoKey for HKDF that derives bits';

/** Whether a value can be the key that blobs are encrypted with. */
export function isKey(value: unknown): boolean {
  return value instanceof CryptoKey
    ? value.algorithm.name === 'HKDF' && value.usages.includes('deriveBits')
    : value instanceof Uint8Array && value.length === 32;
}

/** How many keys of blobs are kept. */
const KEPT_KEYS = 256;

/**
 * Encrypts the blobs of a store. Without a key, blobs pass as they are, and those that are encrypted are
 * refused.
 *
 * Errors: `unsupported` where there is no WebCrypto, on pages without https.
 */
export function encrypted(source: SourceStore, key: Uint8Array | CryptoKey | undefined): BlobStore {
  return new EncryptedStore(source, key && new Keys(key));
}

/** The keys of blobs, derived from the application's. */
class Keys {
  /** The number of the application's key. */
  readonly number: Promise<Uint8Array>;
  readonly #key: Promise<CryptoKey>;
  readonly #derived = new Map<string, Promise<CryptoKey>>();

  constructor(key: Uint8Array | CryptoKey) {
    if (globalThis.crypto?.subtle === undefined) {
      const message = 'encrypting blobs is not supported on pages without https';
      throw nacreError('unsupported', message);
    }
    this.#key =
      key instanceof CryptoKey
        ? Promise.resolve(key)
        : crypto.subtle.importKey('raw', new Uint8Array(key), 'HKDF', false, ['deriveBits']);
    this.number = this.#derive('nacre key').then((bits) => bits.subarray(0, HEAD - MAGIC.length));
    // The calls that ask for it are told.
    this.number.catch(() => undefined);
  }

  /** The key of a blob. */
  of(name: string): Promise<CryptoKey> {
    const kept = this.#derived.get(name);
    if (kept !== undefined) {
      return kept;
    }
    const derived = this.#derive(`nacre blob ${name}`).then((bits) =>
      crypto.subtle.importKey('raw', bits, 'AES-GCM', false, ['encrypt', 'decrypt']),
    );
    this.#derived.set(name, derived);
    const [oldest] = this.#derived.keys();
    if (this.#derived.size > KEPT_KEYS && oldest !== undefined) {
      this.#derived.delete(oldest);
    }
    return derived;
  }

  async #derive(about: string): Promise<Uint8Array<ArrayBuffer>> {
    const info = new TextEncoder().encode(about);
    const salt = new Uint8Array();
    const how = { name: 'HKDF', hash: 'SHA-256', salt, info };
    try {
      return new Uint8Array(await crypto.subtle.deriveBits(how, await this.#key, 256));
    } catch (cause) {
      const message = 'blobs.encryptionKey is no key for HKDF that derives bits';
      throw new NacreError({ kind: 'type', message }, { cause });
    }
  }
}

class EncryptedStore implements BlobStore {
  readonly #source: SourceStore;
  readonly #keys: Keys | undefined;

  constructor(source: SourceStore, keys: Keys | undefined) {
    this.#source = source;
    this.#keys = keys;
  }

  async read(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    if (this.#keys === undefined) {
      return this.#source.read(name, start, end, signal);
    }
    checkBlobName(name);
    if (end <= start) {
      return new Uint8Array();
    }
    const first = Math.floor(start / BLOCK);
    const after = Math.ceil(end / BLOCK);
    const at = (block: number) => HEAD + block * SEALED;
    const sealed = await this.#source.readTo(name, at(first), at(after), signal);
    const { bytes } = await open(await this.#keys.of(name), name, first, sealed);
    const from = first * BLOCK;
    if (from + bytes.length < end) {
      const message = `blob ${name} ends at byte ${from + bytes.length}, before byte ${end}`;
      throw nacreError('corrupt', message);
    }
    return bytes.subarray(start - from, end - from);
  }

  async readAll(name: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; tag: string }> {
    const read = await this.#source.readAll(name, signal);
    const isSealed = beginsWith(read.bytes, MAGIC);
    if (this.#keys === undefined) {
      if (isSealed) {
        throw wrongKey(name, 'encrypted', 'give the key that it was written with');
      }
      return read;
    }
    if (!isSealed) {
      const hint = 'leave the key out: blobs are encrypted from their beginning on or not';
      throw wrongKey(name, 'not encrypted', hint);
    }
    if (!beginsWith(read.bytes.subarray(MAGIC.length), await this.#keys.number)) {
      throw wrongKey(name, 'encrypted with another key', 'give the key that it was written with');
    }
    const sealed = read.bytes.subarray(HEAD);
    const { bytes, isLast } = await open(await this.#keys.of(name), name, 0, sealed);
    if (!isLast) {
      throw damaged(name);
    }
    return { bytes, tag: read.tag };
  }

  async write(
    name: string,
    bytes: Uint8Array,
    when: WriteIf,
    signal?: AbortSignal,
  ): Promise<string> {
    checkBlobName(name);
    const sealed = this.#keys === undefined ? bytes : await seal(this.#keys, name, bytes);
    return this.#source.write(name, sealed, when, signal);
  }

  async list(prefix: string, signal?: AbortSignal): Promise<BlobInfo[]> {
    const listed = await this.#source.list(prefix, signal);
    if (this.#keys === undefined) {
      return listed;
    }
    return listed.map((info) => ({ ...info, length: plainLength(info.length) }));
  }

  remove(name: string, signal?: AbortSignal): Promise<void> {
    return this.#source.remove(name, signal);
  }
}

/** Encrypts a blob. */
async function seal(keys: Keys, name: string, plain: Uint8Array): Promise<Uint8Array> {
  const key = await keys.of(name);
  const blocks = Math.max(1, Math.ceil(plain.length / BLOCK));
  const sealed = new Uint8Array(HEAD + plain.length + blocks * (NONCE + TAG));
  sealed.set(MAGIC);
  sealed.set(await keys.number, MAGIC.length);
  const one = async (_: unknown, block: number) => {
    const at = HEAD + block * SEALED;
    const nonce = sealed.subarray(at, at + NONCE);
    crypto.getRandomValues(nonce);
    nonce[0] = ((nonce[0] ?? 0) & ~1) | (block + 1 === blocks ? 1 : 0);
    const content = plain.slice(block * BLOCK, (block + 1) * BLOCK);
    sealed.set(
      new Uint8Array(await crypto.subtle.encrypt(cipher(nonce, block), key, content)),
      at + NONCE,
    );
  };
  await Promise.all(Array.from({ length: blocks }, one));
  return sealed;
}

/** Decrypts the blocks from the number `first` on, and tells whether the last one of the blob is among them. */
async function open(
  key: CryptoKey,
  name: string,
  first: number,
  sealed: Uint8Array,
): Promise<{ bytes: Uint8Array; isLast: boolean }> {
  const blocks = Math.ceil(sealed.length / SEALED);
  const bytes = new Uint8Array(Math.max(0, sealed.length - blocks * (NONCE + TAG)));
  let isLast = false;
  const one = async (_: unknown, block: number) => {
    const at = block * SEALED;
    const here = sealed.slice(at, at + SEALED);
    const isEnd = ((here[0] ?? 0) & 1) === 1;
    // Nothing follows the last one, and it alone may be shorter.
    if (here.length < NONCE + TAG || (isEnd ? block + 1 < blocks : here.length < SEALED)) {
      throw damaged(name);
    }
    isLast ||= isEnd;
    const nonce = here.subarray(0, NONCE);
    try {
      const opened = await crypto.subtle.decrypt(
        cipher(nonce, first + block),
        key,
        here.subarray(NONCE),
      );
      bytes.set(new Uint8Array(opened), block * BLOCK);
    } catch (cause) {
      throw damaged(name, cause);
    }
  };
  await Promise.all(Array.from({ length: blocks }, one));
  return { bytes, isLast };
}

/** How a block is encrypted: it belongs where it is. */
function cipher(iv: Uint8Array<ArrayBuffer>, block: number): AesGcmParams {
  const additionalData = new Uint8Array(8);
  new DataView(additionalData.buffer).setBigUint64(0, BigInt(block), true);
  return { name: 'AES-GCM', iv, additionalData };
}

/** The length of a blob whose encrypted one has this length. What is no encrypted blob is as long as it is. */
function plainLength(sealed: number): number {
  const rest = (sealed - HEAD) % SEALED;
  const blocks = Math.ceil((sealed - HEAD) / SEALED);
  const isBlob = blocks > 0 && (rest === 0 || rest >= NONCE + TAG);
  return isBlob ? sealed - HEAD - blocks * (NONCE + TAG) : sealed;
}

function beginsWith(bytes: Uint8Array, beginning: Uint8Array): boolean {
  return bytes.length >= beginning.length && beginning.every((byte, i) => bytes[i] === byte);
}

function wrongKey(name: string, what: string, hint: string): NacreError {
  return new NacreError({ kind: 'io', message: `blob ${name} is ${what}`, hint });
}

function damaged(name: string, cause?: unknown): NacreError {
  const message = `blob ${name} is not what was written`;
  const hint = 'its bytes were changed, or are those of another blob';
  return new NacreError({ kind: 'corrupt', message, hint }, { cause });
}
