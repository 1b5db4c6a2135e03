/** What a browser's worker needs to know to open a database. */

import { nacreError } from '../../../worker/shared/errors.js';
import { VERSION } from '../../../worker/shared/version.js';
import type { OpenRequest } from '../../../worker/shared/wire.js';
import { isBlobsUrl } from '../../../worker/shared/blobs/url.js';
import {
  engineOptions,
  type Blobs,
  fallbackOption,
  importOption,
  preloadOption,
  type ConnectOptions,
} from './options.js';

/** Checks the arguments of `connect`. */
export function openRequest(url: string, options: ConnectOptions, blobs: Blobs): OpenRequest {
  if (url !== 'memory://' && !url.startsWith('opfs://') && !isBlobsUrl(url)) {
    throw nacreError(
      'unsupported',
      `'${url}' is not a place where a browser can keep a database: use opfs://name or memory://`,
    );
  }
  return {
    version: VERSION,
    url,
    options: engineOptions(options, isBlobsUrl(url)),
    wasmUrl: absolute('wasmUrl', options.wasmUrl),
    wasmModule: options.wasmModule,
    moreWasmUrl: absolute('moreWasmUrl', options.moreWasmUrl),
    moreWasmModule: options.moreWasmModule,
    preload: preloadOption(options),
    import: importOption(options),
    fallback: fallbackOption(options),
    blobs: blobs.wire,
    blobsUrl: absolute('blobsUrl', options.blobsUrl),
  };
}

function absolute(option: string, url: string | URL | undefined): string | undefined {
  if (url === undefined) {
    return undefined;
  }
  try {
    return new URL(
      url,
      globalThis.document?.baseURI ?? globalThis.location?.href ?? import.meta.url,
    ).href;
  } catch (error) {
    throw nacreError('type', `${option} is not a valid URL: ${String(url)}`, error);
  }
}
