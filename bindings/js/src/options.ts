/** What `connect` can be told. */

import { nacreError } from '../../../worker/shared/errors.js';
import type { EngineOptions } from '../../../worker/shared/protocol.js';
import type { TypeOptions } from './types.js';

export interface ConnectOptions {
  /**
   * `strict`: a commit is answered once it is on the disk. `relaxed`: it is there about 100 ms later.
   * @default 'strict'
   */
  durability?: 'strict' | 'relaxed';
  /**
   * Bytes of memory one statement may use.
   * @default 536_870_912 (512 MiB)
   */
  memoryLimit?: number;
  /**
   * Bytes of decoded blocks to keep in memory.
   * @default 67_108_864 (64 MiB)
   */
  cacheBytes?: number;
  /** How SQL types become JavaScript values. */
  types?: TypeOptions;
  /** Where the engine's WebAssembly file is, when not beside the worker. */
  wasmUrl?: string | URL;
  /** The engine's WebAssembly module, when it is compiled already. */
  wasmModule?: WebAssembly.Module;
  /** Where the worker's script is, when not beside this module. Browsers only. */
  workerUrl?: string | URL;
}

const TYPE_CHOICES: Record<keyof TypeOptions, readonly string[]> = {
  bigint: ['bigint', 'number'],
  decimal: ['string', 'number'],
  date: ['date', 'string'],
  json: ['value', 'string'],
};

/** The choices of types, checked. */
export function typeOptions({ types = {} }: ConnectOptions): TypeOptions {
  for (const [name, value] of Object.entries(types)) {
    const choices = TYPE_CHOICES[name as keyof TypeOptions] as readonly string[] | undefined;
    if (choices === undefined) {
      throw nacreError('type', `types has no '${name}'`);
    }
    if (value !== undefined && !choices.includes(value as string)) {
      const all = choices.map((choice) => `'${choice}'`).join(' or ');
      throw nacreError('type', `types.${name} is ${all}, not '${String(value)}'`);
    }
  }
  return types;
}

/** The part of the options that goes to the engine, checked. */
export function engineOptions(options: ConnectOptions): EngineOptions {
  const { durability, memoryLimit, cacheBytes } = options;
  if (durability !== undefined && durability !== 'strict' && durability !== 'relaxed') {
    throw nacreError('type', `durability is 'strict' or 'relaxed', not '${String(durability)}'`);
  }
  for (const [name, value] of Object.entries({ memoryLimit, cacheBytes })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
      throw nacreError('type', `${name} is a number of bytes, not ${String(value)}`);
    }
  }
  return { durability, memoryLimit, cacheBytes };
}
