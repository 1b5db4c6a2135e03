/**
 * Starts the engine's WebAssembly module, polls its calls that wait, and converts what it throws to
 * NacreErrors. There is one module instance per thread, whose memory all connections of the thread
 * share.
 *
 * The engine is divided: a second module has the functions that most pages never call. The first
 * one asks for it when it is needed, in the middle of a call, so it is loaded synchronously.
 */

import { setLoadMore } from '../../bindings/wasm/more.js';
import init, {
  __wbg_reset_state as resetInstance,
  initSync,
  loadAll,
  Pending,
} from '../../bindings/wasm/pkg/nacre.js';
import { adviceOn, fetchModule, mustBeOfOneBuild, notStarted } from './engine-file.js';
import { NacreError, nacreError, toErrorData } from './errors.js';
import { nextTask } from './next-task.js';

export {
  Changes,
  Database,
  endsTransaction,
  Load,
  Prepared,
  Rows,
  Session,
} from '../../bindings/wasm/pkg/nacre.js';

/** Longest delay that a timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

let ready = false;
let loading: Promise<void> | null = null;
/** Number of the current instance. A trap ends an instance, and everything that belongs to it. */
let instance = 1;
/** Message of the trap that ended the current instance. */
let broken: string | null = null;
/** Message of the last trap, which outlives its instance. */
let lastTrap = '';
/** Fails each call that waits. */
const waiting = new Set<(error: NacreError) => void>();
/** Answers why the instance cannot be trusted although it has not trapped; once, and else null. */
let suspicion: () => string | null = () => null;
/** What an instance that traps leaves behind. */
export interface Stoppable {
  /** Releases what it holds outside the instance, so that others can open the files. */
  stop(): void;
}

/**
 * What is told of a trap. Weakly: an object at the edge leaves memory without closing its database, which is
 * released when nothing else knows it.
 */
const stoppables = new Set<{ deref(): Stoppable | undefined }>();

/** Reads a module, or its bytes, synchronously. */
export type ReadModule = () => BufferSource | WebAssembly.Module;

/** Reads the second module; null until the first one is loaded. */
let readMore: ReadModule | null = null;
/** The first module; null until it is loaded. */
let first: WebAssembly.Module | null = null;
/** The second module, once it was needed. */
let more: WebAssembly.Module | null = null;
/** What the message of a trap begins with that is none: the second module did not load. */
const NOT_WHOLE = 'the second part of the engine did not load';

/** What the first module exports for the second one, if the engine is divided. */
interface Divided {
  readonly isWhole?: WebAssembly.Global<'i32'>;
}

setLoadMore(() => {
  // The glue answers the exports of the current instance, without a look at the module.
  const exports = initSync({ module: new Uint8Array() }) as Divided;
  const { isWhole } = exports;
  if (isWhole === undefined || isWhole.value === 1) {
    return;
  }
  try {
    more ??= secondModule(readMore!());
    new WebAssembly.Instance(more, { a: exports as WebAssembly.ModuleImports });
    isWhole.value = 1;
  } catch (error) {
    // The call that needs it cannot go on, nor be undone.
    throw new WebAssembly.RuntimeError(`${NOT_WHOLE}: ${reasonOf(error)}${adviceOn(error)}`);
  }
});

function secondModule(source: BufferSource | WebAssembly.Module): WebAssembly.Module {
  const module = moduleOf(source);
  mustBeOfOneBuild(first!, module);
  return module;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function moduleOf(source: BufferSource | WebAssembly.Module): WebAssembly.Module {
  // A runtime may hand over a module of another realm, which is no `Module` of this one yet.
  return 'byteLength' in source
    ? new WebAssembly.Module(source)
    : (Object.setPrototypeOf(source, WebAssembly.Module.prototype) as WebAssembly.Module);
}

/** Loads the first module from a URL; returns at once if it is loaded already. */
export function loadFromUrl(url: string, rest: ReadModule): Promise<void> {
  return load(() => fetchModule(url), rest);
}

/** Uses a first module that the caller compiled. */
export function loadFromModule(module: WebAssembly.Module, rest: ReadModule): Promise<void> {
  return load(() => Promise.resolve(module), rest);
}

/**
 * Loads both modules synchronously, unless they are loaded already; for runtimes that read files
 * synchronously. Not to be mixed with the asynchronous functions, which would replace the instance
 * when they finish.
 */
export function loadSync(read: ReadModule, rest: ReadModule): void {
  if (ready) {
    suspect();
    revive();
  } else {
    readMore = rest;
    const source = read();
    try {
      first = moduleOf(source);
      initSync({ module: first });
      // Later its file may be another one, or gone.
      loadAll();
    } catch (error) {
      throw notStarted(error);
    }
    ready = true;
  }
}

/**
 * After a trap, makes a fresh instance for new connections. Connections of the old instance keep
 * failing.
 */
function revive(): void {
  if (broken !== null) {
    resetInstance();
    instance++;
    broken = null;
  }
}

function load(compile: () => Promise<WebAssembly.Module>, rest: ReadModule): Promise<void> {
  if (ready) {
    revive();
    return Promise.resolve();
  }
  if (loading === null) {
    readMore = rest;
  }
  loading ??= start(compile()).then(
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

async function start(compiling: Promise<WebAssembly.Module>): Promise<void> {
  first = await compiling;
  await init({ module_or_path: first });
}

/** The instance that new connections belong to. */
export function currentInstance(): number {
  return instance;
}

/**
 * Converts an error thrown by the engine. A trap means that an invariant of the engine is broken:
 * its memory can no longer be trusted, so every later call on the instance fails.
 */
export function engineError(thrown: unknown): NacreError {
  if (thrown instanceof NacreError) {
    return thrown;
  }
  // A stack overflow is a RangeError, and leaves the engine in an unknown state too.
  if (thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError) {
    abandon(thrown.message);
    return brokenError();
  }
  return new NacreError(toErrorData(thrown));
}

/** Gives up the current instance, whose memory can no longer be trusted. New connections make another. */
function abandon(why: string): void {
  broken ??= why;
  lastTrap = broken;
  waiting.forEach((stop) => stop(brokenError()));
  for (const each of stoppables) {
    try {
      each.deref()?.stop();
    } catch {
      // The others are released all the same, and the trap is the error to report.
    }
  }
  stoppables.clear();
}

/** Has `why` asked before each call into the instance. */
export function watch(why: () => string | null): void {
  suspicion = why;
}

function suspect(): void {
  const why = suspicion();
  if (why !== null) {
    abandon(why);
  }
}

/** The answer of an engine call: its result, or the promise of it if the call has to wait. */
export function answerOf<T>(answer: unknown): T | Promise<T> {
  return answer instanceof Pending ? promiseOf<T>(answer) : (answer as T);
}

/**
 * Polls a call that waits until it ends. All polling is done here, so that a trap fails every
 * waiting call.
 */
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
      suspect();
      if (!waiting.has(stop)) {
        return;
      }
      clearTimeout(timer);
      try {
        const answer: unknown = pending.poll(wake);
        if (answer === 0) {
          // It gives way. The next task is never cancelled: a call that has ended is not polled.
          nextTask(step);
          return;
        }
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

/** How long a synchronous call waits for something other than its turn, in milliseconds. */
const MAX_SPIN_MS = 50;

/**
 * The result of an engine call, which does not give way until it has one. If it must wait, `cancel`
 * ends it; `later` takes over a call that even then has not ended.
 *
 * Errors: `unavailable` if it must wait.
 */
export function resultNow<T>(
  answer: unknown,
  cancel: () => void,
  later: (ended: Promise<unknown>) => void,
): T {
  if (!(answer instanceof Pending)) {
    return answer as T;
  }
  let since: number | null = null;
  let cancelled = false;
  let isWoken = false;
  const wake = (): void => {
    isWoken = true;
  };
  for (;;) {
    isWoken = false;
    const polled = pollNow(answer, wake);
    if (typeof polled !== 'number') {
      answer.free();
      return polled as T;
    }
    if (polled === 0 || isWoken) {
      // It gave way: nothing else is to be let in.
      since = null;
      continue;
    }
    since ??= performance.now();
    if (performance.now() - since < MAX_SPIN_MS) {
      continue;
    }
    if (cancelled) {
      later(promiseOf(answer));
      throw mustWait();
    }
    cancel();
    cancelled = true;
    since = null;
  }
}

function pollNow(pending: Pending, wake: () => void): unknown {
  try {
    return pending.poll(wake);
  } catch (error) {
    const failure = engineError(error);
    if (broken === null) {
      pending.free();
    }
    throw failure.kind === 'cancelled' ? mustWait() : failure;
  }
}

/** The error of a synchronous call that cannot run without waiting. */
export function mustWait(): NacreError {
  return nacreError(
    'unavailable',
    'the statement must wait, which a synchronous call cannot: await run() instead',
  );
}

/** Stops `it` if the instance traps. Returns a function that revokes this. */
export function afterTrap(it: Stoppable): () => void {
  stoppables.forEach((each) => each.deref() ?? stoppables.delete(each));
  // Workers of an early compatibility date have no weak references.
  const reference = globalThis.WeakRef ? new WeakRef(it) : { deref: () => it };
  stoppables.add(reference);
  return () => stoppables.delete(reference);
}

/** Whether an instance is the current one and has not trapped. */
export function isSound(of: number): boolean {
  suspect();
  return broken === null && of === instance;
}

/** Throws `closed` if an instance has trapped. */
export function mustBeSound(of: number): void {
  if (!isSound(of)) {
    throw brokenError();
  }
}

function brokenError(): NacreError {
  const what = lastTrap.startsWith(NOT_WHOLE)
    ? lastTrap
    : `the engine stopped after an internal error (${lastTrap})`;
  return nacreError('closed', `${what}; committed changes are safe, connect again`);
}
