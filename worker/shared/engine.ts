/**
 * Getting the engine's WebAssembly module going, and turning what it throws into errors of ours.
 * One module instance per thread: connections in one thread share its memory.
 */

import init, { initSync } from '../../bindings/wasm/pkg/nacre.js';
import { NacreError, nacreError, toErrorData } from './errors.js';

export { Database, Prepared, Session } from '../../bindings/wasm/pkg/nacre.js';

let ready = false;
let loading: Promise<void> | null = null;
let broken: string | null = null;

/** Loads the module from its address; quick when it is loaded already. */
export function loadFromUrl(url: string): Promise<void> {
  return load(() => init({ module_or_path: compile(url) }));
}

/** Uses a module the caller compiled. */
export function loadFromModule(module: WebAssembly.Module): Promise<void> {
  return load(() => init({ module_or_path: module }));
}

/** Compiles and uses bytes the caller read; for runtimes that read files synchronously. */
export function loadFromBytes(bytes: BufferSource): void {
  if (!ready) {
    initSync({ module: new WebAssembly.Module(bytes) });
    ready = true;
  }
}

function load(start: () => Promise<unknown>): Promise<void> {
  if (ready) {
    return Promise.resolve();
  }
  loading ??= start().then(
    () => {
      ready = true;
    },
    (error: unknown) => {
      loading = null;
      throw error instanceof NacreError
        ? error
        : nacreError('io', `the engine's WebAssembly module did not start: ${String(error)}`, error);
    },
  );
  return loading;
}

async function compile(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url).catch((error: unknown) => {
    throw nacreError('io', `cannot fetch ${url}: ${String(error)}`, error);
  });
  if (!response.ok) {
    throw nacreError('io', `cannot fetch ${url}: HTTP status ${response.status}`);
  }
  // Servers that do not know .wasm answer another media type, which streaming compilation refuses.
  if (response.headers.get('content-type')?.split(';')[0]?.trim() === 'application/wasm') {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

/**
 * An error thrown by the engine, as ours. A trap means that the engine broke one of its own rules: its
 * memory cannot be trusted any more, so everything afterwards is refused.
 */
export function engineError(thrown: unknown): NacreError {
  if (thrown instanceof NacreError) {
    return thrown;
  }
  if (thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError) {
    broken ??= thrown.message;
    return brokenError();
  }
  return new NacreError(toErrorData(thrown));
}

/** Refuses to go on after a trap. */
export function mustBeSound(): void {
  if (broken !== null) {
    throw brokenError();
  }
}

function brokenError(): NacreError {
  return nacreError(
    'closed',
    `the engine stopped after an internal error (${broken}); what was committed is safe, connect again in a fresh worker`,
  );
}
