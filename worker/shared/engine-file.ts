/**
 * The engine's WebAssembly files: fetches and compiles one, and says what to do when that fails. The
 * usual causes are a file that was not deployed, a server that answers with a page instead, files of
 * two versions, and a Content-Security-Policy.
 */

import { nacreError, type NacreError } from './errors.js';

/** Section of both files in which `tools/build.mjs` writes which build they are of. */
const BUILD_SECTION = 'build';

/** Fetches and compiles a file. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url).catch((error: unknown) => {
    throw notFetched(url, String(error), error);
  });
  if (!response.ok) {
    throw notFetched(url, `HTTP status ${response.status}`);
  }
  const type = response.headers.get('content-type')?.trim() ?? '';
  try {
    // Streaming compilation accepts only this media type, without parameters, which some servers do
    // not send.
    return type === 'application/wasm'
      ? await WebAssembly.compileStreaming(response)
      : await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    throw notStarted(error, `${url}${type === '' ? '' : `, served as ${type}`}`);
  }
}

/** The error of a file that cannot be fetched. */
export function notFetched(url: string, reason: string, cause?: unknown): NacreError {
  const advice = reason.startsWith('HTTP')
    ? 'serve the file of the package there, or set wasmUrl and moreWasmUrl'
    : 'the device may be offline; the Content-Security-Policy that the worker script is served with must allow it in connect-src, and another origin must allow it by CORS';
  return nacreError('io', `cannot fetch ${url}: ${reason}; ${advice}`, cause);
}

/** The error of a module that does not compile, or does not fit. `from` says where it is from. */
export function notStarted(error: unknown, from = ''): NacreError {
  const place = from === '' ? '' : ` (${from})`;
  const message = `the engine's WebAssembly module${place} did not start: ${String(error)}`;
  return nacreError('io', `${message}${adviceOn(error)}`, error);
}

/** What to do about a module that does not compile, or does not fit; empty if that is not known. */
export function adviceOn(error: unknown): string {
  const message = String(error);
  if (/content security policy|\bCSP\b|unsafe-eval/i.test(message)) {
    return "; serve the worker's script with 'wasm-unsafe-eval' in script-src";
  }
  if (error instanceof WebAssembly.CompileError) {
    return '; the file is cut short, damaged, or not WebAssembly: serve it as it is in the package';
  }
  if (error instanceof WebAssembly.LinkError) {
    return '; the files are of different versions of nacredb: deploy those of one version together, then reload';
  }
  return '';
}

/** Throws a LinkError if two modules are of different builds. */
export function mustBeOfOneBuild(first: WebAssembly.Module, more: WebAssembly.Module): void {
  const [build, other] = [first, more].map(buildOf);
  if (build !== other) {
    throw new WebAssembly.LinkError(`it is of build ${other}, and the first one of build ${build}`);
  }
}

function buildOf(module: WebAssembly.Module): string {
  const [section] = WebAssembly.Module.customSections(module, BUILD_SECTION);
  return section === undefined ? 'unknown' : new TextDecoder().decode(section);
}
