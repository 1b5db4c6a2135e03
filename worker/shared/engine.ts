/**
 * Getting the engine's WebAssembly module going, and turning what it throws into errors of ours.
 * One module instance per thread: connections in one thread share its memory.
 */

import init, {
  __wbg_reset_state as resetInstance,
  initSync,
  Pending,
} from '../../bindings/wasm/pkg/nacre.js';
import { NacreError, nacreError, toErrorData } from './errors.js';

export {
  Database,
  endsTransaction,
  Prepared,
  Rows,
  Session,
} from '../../bindings/wasm/pkg/nacre.js';

/** Longest time that a timer can be set to. */
const MAX_TIMER_MS = 2 ** 31 - 1;

let ready = false;
let loading: Promise<void> | null = null;
/** Counts instances: a trap ends one, and everything that belongs to it. */
let instance = 1;
let broken: string | null = null;
/** Why the last instance ended. */
let lastTrap = '';
/** How calls that wait are told that the engine stopped. */
const waiting = new Set<(error: NacreError) => void>();
/** Gives back what connections of the instance hold. */
const holding = new Set<() => void>();

/** Loads the module from its address; quick when it is loaded already. */
export function loadFromUrl(url: string): Promise<void> {
  return load(() => init({ module_or_path: compile(url) }));
}

/** Uses a module the caller compiled. */
export function loadFromModule(module: WebAssembly.Module): Promise<void> {
  return load(() => init({ module_or_path: module }));
}

/**
 * Uses a module, or the bytes of one, that the caller has or reads if it is needed; for runtimes that read files
 * synchronously. Not beside the asynchronous ways, whose end would replace what this has started.
 */
export function loadSync(read: () => BufferSource | WebAssembly.Module): void {
  if (ready) {
    revive();
  } else {
    const source = read();
    try {
      initSync({
        module: source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source),
      });
    } catch (error) {
      throw notStarted(error);
    }
    ready = true;
  }
}

/** After a trap: a fresh instance for new connections. Those of the old one stay refused. */
function revive(): void {
  if (broken !== null) {
    resetInstance();
    instance++;
    broken = null;
  }
}

function load(start: () => Promise<unknown>): Promise<void> {
  if (ready) {
    revive();
    return Promise.resolve();
  }
  loading ??= start().then(
    () => {
      ready = true;
    },
    (error: unknown) => {
      loading = null;
      throw error instanceof NacreError ? error : notStarted(error);
    },
  );
  return loading;
}

function notStarted(error: unknown): NacreError {
  return nacreError('io', `the engine's WebAssembly module did not start: ${String(error)}`, error);
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

/** The instance new connections belong to. */
export function currentInstance(): number {
  return instance;
}

/**
 * An error thrown by the engine, as ours. A trap means that the engine broke one of its own rules: its
 * memory cannot be trusted any more, so everything afterwards is refused.
 */
export function engineError(thrown: unknown): NacreError {
  if (thrown instanceof NacreError) {
    return thrown;
  }
  // Running out of stack is a RangeError, and leaves the engine in the middle of something just the same.
  if (thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError) {
    broken ??= thrown.message;
    lastTrap = broken;
    waiting.forEach((stop) => stop(brokenError()));
    for (const giveBack of holding) {
      try {
        giveBack();
      } catch {
        // The others give back theirs all the same, and the trap is what is told.
      }
    }
    holding.clear();
    return brokenError();
  }
  return new NacreError(toErrorData(thrown));
}

/** What a call of the engine answers: its result, or the promise of it when the call has to wait. */
export function answerOf<T>(answer: unknown): T | Promise<T> {
  return answer instanceof Pending ? promiseOf<T>(answer) : (answer as T);
}

/** Every step of a call that waits is made here, so that a trap is seen, and ends all that wait. */
function promiseOf<T>(pending: Pending): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let queued = false;
    const end = (): void => {
      clearTimeout(timer);
      waiting.delete(stop);
    };
    const stop = (error: NacreError): void => {
      end();
      reject(error);
    };
    const step = (): void => {
      queued = false;
      if (!waiting.has(stop)) {
        return;
      }
      clearTimeout(timer);
      try {
        const answer: unknown = pending.poll(wake);
        if (typeof answer === 'number') {
          timer = setTimeout(step, Math.min(Math.ceil(answer), MAX_TIMER_MS));
          return;
        }
        resolve(answer as T);
      } catch (error) {
        reject(engineError(error));
      }
      if (waiting.has(stop)) {
        end();
        pending.free();
      }
    };
    const wake = (): void => {
      if (!queued) {
        queued = true;
        queueMicrotask(step);
      }
    };
    waiting.add(stop);
    step();
  });
}

/** Has something given back when the instance traps: others can open it then. Answers how to call that off. */
export function afterTrap(giveBack: () => void): () => void {
  holding.add(giveBack);
  return () => holding.delete(giveBack);
}

/** Whether an instance has not trapped. */
export function isSound(of: number): boolean {
  return broken === null && of === instance;
}

/** Refuses to go on with an instance that trapped. */
export function mustBeSound(of: number): void {
  if (!isSound(of)) {
    throw brokenError();
  }
}

function brokenError(): NacreError {
  return nacreError(
    'closed',
    `the engine stopped after an internal error (${lastTrap}); what was committed is safe, connect again`,
  );
}
