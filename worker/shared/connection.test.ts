import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Connection } from './connection.js';
import { loadSync } from './engine.js';
import type { OwnedStore } from './local-store.js';
import { MAIN_SESSION, type Answer, type Arguments, type ConnectionMethod } from './protocol.js';

/** An engine that does what a test says and records its calls. */
const engine = vi.hoisted(() => {
  class Pending {
    /** Answers a number as long as the call waits. */
    step: () => unknown = () => 10_000;
    wake: () => void = () => {};
    poll(wake: () => void): unknown {
      this.wake = wake;
      return this.step();
    }
    free(): void {}
    /** Wakes the call, whose next step is this. */
    goOn(step: () => unknown): void {
      this.step = step;
      this.wake();
    }
  }
  const calls: string[] = [];
  const noted = (name: string) => (): void => void calls.push(name);
  const session = {
    execute: (sql: string): unknown => void calls.push(sql),
    prepare: () => ({
      fields: () => [],
      parameters: () => [],
      tables: () => Uint32Array.of(1),
      free: noted('free a statement'),
    }),
    run: (): unknown => undefined,
    stream: noted('stream'),
    inTransaction: () => true,
    cancel: noted('cancel'),
    free: noted('free a session'),
  };
  const database = {
    session: () => session,
    maintain: () => false,
    newestChange: () => 1,
    flush: noted('flush'),
    close: noted('close'),
    free: noted('free'),
  };
  return { Pending, calls, session, database, open: (): unknown => database };
});

vi.mock('../../bindings/wasm/pkg/nacre.js', () => ({
  default: () => Promise.resolve(),
  initSync: () => ({}),
  loadAll: () => {},
  __wbg_reset_state: () => {},
  Changes: class {},
  Database: { open: () => engine.open() },
  Load: class {},
  Pending: engine.Pending,
  Prepared: class {},
  Rows: class {},
  Session: class {},
  endsTransaction: (sql: string) => sql === 'commit',
}));

const trap = (): never => {
  throw new WebAssembly.RuntimeError('unreachable');
};
const closed = { kind: 'closed', message: expect.stringContaining('internal error') };

/** Opens a connection. `waits` makes its next statement wait. */
async function opened(options = {}) {
  const store = { close: vi.fn(), prepare: () => undefined, ranShort: () => false };
  const connection = await Connection.open(store as unknown as OwnedStore, options);
  const call = async <M extends ConnectionMethod>(
    method: M,
    ...args: Arguments<M>
  ): Promise<Answer<M>> => connection.call(method, args);
  const execute = (session: number, sql: string) => call('execute', session, sql, undefined);
  const waits = () => {
    const pending = new engine.Pending();
    vi.spyOn(engine.session, 'execute').mockImplementationOnce(() => pending);
    return pending;
  };
  return { connection, store, call, execute, waits };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // A fresh instance, in case the previous test ended in a trap.
  const empty = () => new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  loadSync(empty, empty);
  engine.calls.length = 0;
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test('a relaxed commit that had to wait is synced within the interval', async () => {
  const { execute, waits } = await opened({ durability: 'relaxed' });
  const pending = waits();
  const waiting = execute(MAIN_SESSION, 'insert');
  await vi.advanceTimersByTimeAsync(1000);
  pending.goOn(() => 'inserted');
  expect(await waiting).toBe('inserted');
  engine.calls.length = 0;
  await vi.advanceTimersByTimeAsync(100);
  expect(engine.calls).toEqual(['flush']);
});

test('a call that waited leaves no timer behind', async () => {
  const { execute, waits } = await opened();
  const pending = waits();
  const waiting = execute(MAIN_SESSION, 'update');
  await vi.advanceTimersByTimeAsync(1);
  expect(vi.getTimerCount()).toBe(1);
  pending.goOn(() => 'updated');
  expect(await waiting).toBe('updated');
  await vi.advanceTimersByTimeAsync(5);
  expect(vi.getTimerCount()).toBe(0);
});

test('a waiting call is polled again after the time it asked for', async () => {
  const { execute, waits } = await opened();
  const pending = waits();
  const waiting = execute(MAIN_SESSION, 'update');
  pending.step = () => {
    throw { kind: 'lock_timeout', message: 'the lock was not released in time' };
  };
  const expected = expect(waiting).rejects.toMatchObject({ kind: 'lock_timeout' });
  await vi.advanceTimersByTimeAsync(10_000);
  await expected;
});

test('a trap while opening is an error', async () => {
  const pending = new engine.Pending();
  vi.spyOn(engine, 'open').mockImplementation(() => pending);
  const opening = opened();
  pending.goOn(trap);
  await expect(opening).rejects.toMatchObject(closed);
});

test('a trap in one waiting call fails all waiting calls, and lets close finish', async () => {
  const { connection, store, call, execute, waits } = await opened();
  await call('begin', 1);
  const [first, second] = [waits(), waits()];
  const calls = [execute(MAIN_SESSION, 'first'), execute(1, 'second'), execute(1, 'third')];
  const closing = connection.close();
  first.goOn(trap);
  const settled = await Promise.allSettled(calls);
  expect(settled).toMatchObject(calls.map(() => ({ status: 'rejected', reason: closed })));
  await closing;
  expect(store.close).toHaveBeenCalled();
  // The trapped engine is never called again.
  second.goOn(trap);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(engine.calls).toEqual(['begin']);
});

test('a trap fails a live query that waits for changes', async () => {
  const { call, execute, waits } = await opened();
  vi.spyOn(engine.session, 'run').mockImplementation(() => ({ columns: [] }));
  await call('live', 3, 'select 1', undefined);
  const next = call('nextLive', 3);
  const settled: string[] = [];
  void call('stopped').then(() => settled.push('stopped'));
  next.catch(() => settled.push('nextLive'));
  const expected = expect(next).rejects.toMatchObject(closed);
  const pending = waits();
  execute(MAIN_SESSION, 'first').catch(() => {});
  pending.goOn(trap);
  await expected;
  // A tab that shares the database gives this leader up before it hears of the failure.
  expect(settled).toEqual(['stopped', 'nextLive']);
});

test('a trap releases the files', async () => {
  const { store, execute, waits } = await opened();
  const pending = waits();
  const call = execute(MAIN_SESSION, 'first');
  const expected = expect(call).rejects.toMatchObject(closed);
  expect(store.close).not.toHaveBeenCalled();
  pending.goOn(trap);
  await expected;
  expect(store.close).toHaveBeenCalled();
});

test('maintenance stops when the engine has trapped meanwhile', async () => {
  const { store, execute, waits } = await opened();
  await vi.advanceTimersByTimeAsync(1);
  let ready = () => {};
  store.prepare = vi.fn(() => new Promise<void>((resolve) => (ready = resolve))) as never;
  const maintain = vi.spyOn(engine.database, 'maintain');
  await execute(MAIN_SESSION, 'first');
  await vi.advanceTimersByTimeAsync(5);
  expect(store.prepare).toHaveBeenCalled();
  const pending = waits();
  const expected = expect(execute(MAIN_SESSION, 'second')).rejects.toMatchObject(closed);
  pending.goOn(trap);
  await expected;
  ready();
  await vi.advanceTimersByTimeAsync(1);
  expect(maintain).not.toHaveBeenCalled();
});

test('background work goes on in idle time, and rests while calls come', async () => {
  const { execute } = await opened();
  await vi.advanceTimersByTimeAsync(1);
  let now = performance.now() + 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const maintain = vi.spyOn(engine.database, 'maintain').mockImplementation(() => {
    now += 5;
    return true;
  });
  await execute(MAIN_SESSION, 'first');
  await vi.advanceTimersByTimeAsync(0);
  expect(maintain).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(19);
  await execute(MAIN_SESSION, 'second');
  expect(maintain).toHaveBeenCalledTimes(1);
  now += 20;
  await vi.advanceTimersByTimeAsync(1);
  expect(maintain).toHaveBeenCalledTimes(2);
  // No call comes any more, but for the rest after the last one.
  now += 20;
  await vi.advanceTimersByTimeAsync(20);
  const before = maintain.mock.calls.length;
  await vi.advanceTimersByTimeAsync(5);
  expect(maintain.mock.calls.length).toBeGreaterThan(before + 2);
});

test('no timer gets a negative delay, of which some runtimes warn', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const { execute } = await opened();
  await execute(MAIN_SESSION, 'first');
  expect(timers).toHaveBeenCalled();
  expect(timers.mock.calls.filter(([, delay]) => delay! < 0)).toEqual([]);
});

test('background work that waits for bytes holds up nothing, and goes on', async () => {
  const { execute } = await opened();
  await vi.advanceTimersByTimeAsync(1);
  const waiting: InstanceType<typeof engine.Pending>[] = [];
  const maintain = vi.spyOn(engine.database, 'maintain').mockImplementation((): never => {
    const pending = new engine.Pending();
    waiting.push(pending);
    return pending as never;
  });
  // Flushes may be due while a merge waits; more than two calls do not wait at a time.
  for (const sql of ['first', 'second', 'third', 'fourth']) {
    await execute(MAIN_SESSION, sql);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(engine.calls).toContain('fourth');
  expect(maintain).toHaveBeenCalledTimes(2);
  waiting.forEach((pending) => pending.goOn(() => true));
  await vi.advanceTimersByTimeAsync(100);
  expect(maintain.mock.calls.length).toBeGreaterThan(2);
});

test('background work that only lacks a prepared file goes on', async () => {
  const { store, execute } = await opened();
  await vi.advanceTimersByTimeAsync(1);
  let short = true;
  store.ranShort = () => short;
  const maintain = vi.spyOn(engine.database, 'maintain').mockImplementation(() => {
    if (maintain.mock.calls.length > 1) {
      short = false;
    }
    throw { kind: 'limit', message: 'no file is left' };
  });
  await execute(MAIN_SESSION, 'first');
  await vi.advanceTimersByTimeAsync(50);
  expect(maintain).toHaveBeenCalledTimes(2);
});

test('a close that fails releases everything', async () => {
  const { connection, store } = await opened();
  vi.spyOn(engine.database, 'close').mockImplementationOnce(() => {
    throw { kind: 'io', message: 'no sync' };
  });
  await expect(connection.close()).rejects.toMatchObject({ kind: 'io' });
  expect(engine.calls).toContain('free');
  expect(store.close).toHaveBeenCalled();
});

test('the statements of a transaction are freed with it', async () => {
  const { call } = await opened();
  await call('begin', 1);
  await call('prepare', MAIN_SESSION, 7, 'select 1');
  await call('prepare', 1, 8, 'select 2');
  await call('end', 1, 'commit');
  expect(engine.calls).toEqual(['begin', 'commit', 'free a statement', 'free a session']);
  await call('finalize', 7);
  expect(engine.calls.filter((name) => name === 'free a statement')).toHaveLength(2);
});

test('a session whose transaction has ended runs nothing', async () => {
  const { call, execute } = await opened();
  await call('begin', 1);
  await call('prepare', 1, 7, 'insert');
  vi.spyOn(engine.session, 'inTransaction').mockImplementation(() => false);
  await expect(execute(1, 'insert')).rejects.toMatchObject({ kind: 'closed' });
  await expect(call('run', 1, 7, undefined)).rejects.toMatchObject({ kind: 'closed' });
  await expect(call('end', 1, 'commit')).rejects.toMatchObject({ kind: 'closed' });
  expect(engine.calls).toEqual(['begin', 'free a statement', 'free a session']);
});

test('a stream that was ended before its statement runs does not run it', async () => {
  const { call, execute, waits } = await opened();
  const pending = waits();
  const first = execute(MAIN_SESSION, 'update');
  const stream = call('stream', MAIN_SESSION, 1, 'columns', 'insert … returning', undefined);
  await call('endStream', 1);
  pending.goOn(() => 'updated');
  await first;
  await expect(stream).rejects.toMatchObject({ kind: 'cancelled' });
  expect(engine.calls).toEqual([]);
});

test('another connection has sessions of its own, and leaves the database open', async () => {
  const { connection, store } = await opened();
  const other = connection.another();
  await other.call('begin', [1]);
  await expect(async () => connection.call('end', [1, 'commit'])).rejects.toMatchObject({
    kind: 'closed',
  });
  await other.close();
  await expect(async () => other.call('flush', [])).rejects.toMatchObject({ kind: 'closed' });
  expect(engine.calls).toEqual(['begin', 'free a session', 'free a session']);
  await connection.call('flush', []);
  expect(store.close).not.toHaveBeenCalled();
  await connection.close();
  expect(store.close).toHaveBeenCalled();
  expect(() => connection.another()).toThrow('closed');
});

test('a connection that is abandoned cancels what runs, and begins nothing more', async () => {
  const { connection, waits } = await opened();
  const other = connection.another();
  await other.call('begin', [1]);
  const pending = waits();
  const running = other.call('execute', [1, 'first', undefined]) as Promise<unknown>;
  const queued = other.call('execute', [1, 'second', undefined]) as Promise<unknown>;
  const abandoned = other.abandon();
  expect(engine.calls).toEqual(['begin', 'cancel', 'cancel']);
  pending.goOn(() => {
    throw { kind: 'cancelled', message: 'the statement was cancelled' };
  });
  const settled = await Promise.allSettled([running, queued]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await abandoned;
  expect(engine.calls.slice(3)).toEqual(['free a session', 'free a session']);
  expect(await connection.call('execute', [MAIN_SESSION, 'third', undefined])).toBeUndefined();
});
