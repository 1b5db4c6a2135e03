/** What a tab sends to a leader, and again to the next one. */

import { expect, test } from 'vitest';
import { MOVED, type Call, type Reply } from '../../../../worker/shared/protocol.js';
import { MessageTransport, type ClientPort } from '../../src/message-transport.js';
import { isOfSession, isRead, leavesTransactionOpen, settingsOf } from '../../src/sql-text.js';
import { TabCalls, WAIT_MS } from '../../src/tab-calls.js';
import { expectKind } from '../testing.js';

/** A leader whose answers the test gives. */
class Leader {
  readonly port: ClientPort = {
    onmessage: null,
    onmessageerror: null,
    postMessage: (calls: Call[]) => void this.calls.push(...calls),
  };
  readonly transport = new MessageTransport(this.port, () => {});
  calls: Call[] = [];

  /** The methods that were called, each with its last argument but parameters. */
  async heard(): Promise<string[]> {
    await new Promise((resolve) => setTimeout(resolve));
    return this.calls.map(({ method, args }) =>
      [method, ...args.filter((arg) => typeof arg === 'string')].join(' '),
    );
  }

  async answer(method: string, result: unknown): Promise<void> {
    await this.#reply(method, result === MOVED ? { moved: true } : { result });
  }

  async fail(method: string, message: string): Promise<void> {
    await this.#reply(method, { error: { kind: 'type', message } });
  }

  async #reply(method: string, rest: object): Promise<void> {
    await this.heard();
    const call = this.calls.find((each) => each.method === method)!;
    this.calls = this.calls.filter((each) => each !== call);
    const reply = { id: call.id, ...rest } as Reply;
    this.port.onmessage!({ data: [reply] } as MessageEvent<Reply[]>);
  }
}

function begun() {
  const timers = { due: () => {} };
  let now = 0;
  const calls = new TabCalls(
    'opfs://test',
    {
      now: () => now,
      setTimeout: (work) => (timers.due = work),
      clearTimeout: () => {},
    },
    () => {},
  );
  const wait = (ms: number): void => {
    now += ms;
    timers.due();
  };
  return { calls, wait, first: new Leader(), second: new Leader() };
}

const NONE = { kind: 'query', columns: [], rows: 0, rowsAffected: 0 };
const field = (name: string) => [{ name, type: 'INT', code: 2, scale: 0 }];

test('settings and prepared statements are made again, in order', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  void calls.call('execute', 0, 'SET threads = 1', undefined);
  void calls.call('prepare', 0, 7, 'update t set n = ?');
  await first.answer('execute', NONE);
  await first.answer('prepare', { fields: [], parameters: [] });
  calls.adopt(second.transport);
  const run = calls.call('run', 0, 7, [1]);
  void calls.call('run', 0, 7, [2]);
  expect(await second.heard()).toEqual([
    'execute SET threads = 1',
    'prepare update t set n = ?',
    'run',
    'run',
  ]);
  await second.answer('prepare', { fields: field('now'), parameters: [] });
  await second.answer('run', NONE);
  // The client has the columns of the first leader.
  expect((await run).fields).toEqual(field('now'));
});

test('a statement that cannot be prepared again says why', async () => {
  const { calls, first } = begun();
  calls.adopt(first.transport);
  void calls.call('prepare', 0, 7, 'select n from gone');
  await first.answer('prepare', { fields: [], parameters: [] });
  calls.lose();
  const run = calls.call('run', 0, 7, undefined);
  const third = new Leader();
  calls.adopt(third.transport);
  await third.heard();
  const error = (message: string) => ({ kind: 'not_found' as const, message });
  const ids = third.calls.map(({ id }) => id);
  const replies = ids.map((id, i) => ({ id, error: error(i === 0 ? 'no table' : 'no statement') }));
  third.port.onmessage!({ data: replies } as MessageEvent<Reply[]>);
  await expectKind(run, 'not_found', { message: 'no table' });
});

test('what a lost leader may have run fails, reads are repeated once', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  const write = calls.call('execute', 0, 'insert into t values (1)', undefined);
  const read = calls.call('execute', 0, 'select 1', undefined);
  await first.heard();
  calls.lose();
  const later = calls.call('execute', 0, 'insert into t values (2)', undefined);
  await expectKind(write, 'unavailable', { mayHaveRun: true, retryable: true });
  calls.adopt(second.transport);
  expect(await second.heard()).toEqual(['execute select 1', 'execute insert into t values (2)']);
  await second.answer('execute', NONE);
  expect(await read).toEqual(NONE);
  calls.lose();
  await expectKind(later, 'unavailable', { mayHaveRun: true });
});

test('what a closing leader refuses, or has not answered, runs at the next one', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  const refused = calls.call('execute', 0, 'insert into t values (1)', undefined);
  void calls.call('execute', 0, 'insert into t values (2)', undefined);
  await first.answer('execute', MOVED);
  calls.closed(first.transport);
  calls.adopt(second.transport);
  expect(await second.heard()).toHaveLength(2);
  await second.answer('execute', NONE);
  expect(await refused).toEqual(NONE);
});

test('an open transaction fails with conflict, and its commit may have been done', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  for (const session of [1, 2]) {
    void calls.call('begin', session);
    await first.answer('begin', null);
  }
  const commit = calls.call('end', 1, 'commit');
  const write = calls.call('execute', 2, 'delete from t', undefined);
  await first.heard();
  calls.adopt(second.transport);
  await expectKind(commit, 'unavailable', { mayHaveRun: true });
  await expectKind(write, 'conflict', { mayHaveRun: false });
  await expectKind(calls.call('end', 2, 'commit'), 'conflict');
  expect(await second.heard()).toEqual([]);
});

test('a transaction whose beginning was not answered begins again', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  void calls.call('begin', 1);
  void calls.call('execute', 1, 'delete from t', undefined);
  await first.heard();
  calls.adopt(second.transport);
  expect(await second.heard()).toEqual(['begin', 'execute delete from t']);
});

test('a live query begins again at the next leader', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  void calls.call('live', 5, 'select 1', undefined);
  await first.answer('live', { fields: [], result: NONE });
  const next = calls.call('nextLive', 5);
  await first.heard();
  calls.adopt(second.transport);
  expect(await second.heard()).toEqual(['live select 1']);
  await second.answer('live', { fields: field('n'), result: NONE });
  expect((await next).fields).toEqual(field('n'));
  void calls.call('nextLive', 5);
  expect(await second.heard()).toEqual(['nextLive']);
});

test('without a leader, calls wait for a while, and can be cancelled', async () => {
  const { calls, wait, first } = begun();
  const early = calls.call('execute', 0, 'delete from t', undefined, 9);
  const late = calls.call('flush');
  await calls.call('cancel', 9);
  await expectKind(early, 'cancelled');
  expect(await calls.call('progress', 9)).toBeNull();
  wait(WAIT_MS);
  await expectKind(late, 'unavailable', { mayHaveRun: false });
  const closing = calls.call('close');
  wait(WAIT_MS);
  expect(await closing).toBeNull();
  calls.adopt(first.transport);
  expect(await first.heard()).toEqual([]);
});

test('a leader that is held gets no calls until it is there after all', async () => {
  const { calls, first } = begun();
  calls.adopt(first.transport);
  calls.hold();
  void calls.call('flush');
  expect(await first.heard()).toEqual([]);
  calls.goOn();
  expect(await first.heard()).toEqual(['flush']);
});

test('what runs at a leader that closes, or is held, can be cancelled', async () => {
  const { calls, first } = begun();
  calls.adopt(first.transport);
  const running = calls.call('execute', 0, 'delete from t', undefined, 9);
  const refused = calls.call('execute', 0, 'delete from u', undefined, 10);
  await first.heard();
  const [, { id }] = first.calls as [Call, Call];
  first.port.onmessage!({ data: [{ id, moved: true }] } as MessageEvent<Reply[]>);
  await first.heard();
  await calls.call('cancel', 10);
  await expectKind(refused, 'cancelled');
  void calls.call('cancel', 9);
  expect(await first.heard()).toContain('cancel');
  await first.fail('execute', 'cancelled');
  await expectKind(running, 'type');
});

test('the slow module of a function holds calls up, and costs no leader', async () => {
  const { calls, wait, first, second } = begun();
  calls.adopt(first.transport);
  const definition = { name: 'slow', module: 'https://example.com/slow.js' };
  void calls.call('createFunction', definition as never);
  await first.answer('createFunction', null);
  calls.adopt(second.transport);
  const early = calls.call('execute', 0, 'select slow(1)', undefined);
  // A sign of life of the leader says nothing of the function.
  calls.goOn();
  expect(await second.heard()).toEqual(['createFunction']);
  wait(WAIT_MS);
  await expectKind(early, 'unavailable', {
    mayHaveRun: false,
    message: expect.stringContaining('modules'),
  });
  void calls.call('execute', 0, 'select slow(2)', undefined);
  await second.answer('createFunction', null);
  expect(await second.heard()).toEqual(['execute select slow(2)']);
});

test('what SQL text says', () => {
  expect(isRead(' select 1;')).toBe(true);
  expect(isRead('select 1; delete from t')).toBe(false);
  expect(isRead('with a as (select 1) select * from a')).toBe(true);
  expect(isRead('with a as (select 1) insert into t select * from a')).toBe(false);
  expect(leavesTransactionOpen('begin; insert into t values (1)')).toBe(true);
  expect(leavesTransactionOpen('START  TRANSACTION')).toBe(true);
  expect(leavesTransactionOpen('/* first */ -- second\n Begin Work')).toBe(true);
  expect(leavesTransactionOpen('insert into t values (1); commit')).toBe(false);
  expect(leavesTransactionOpen('begin; insert into t values (1); END')).toBe(false);
  expect(leavesTransactionOpen('-- all of it\nabort work')).toBe(false);
  expect(leavesTransactionOpen('rollback to savepoint a')).toBeNull();
  expect(leavesTransactionOpen('rollback transaction to a')).toBeNull();
  expect(leavesTransactionOpen('select case when a then b end from t')).toBeNull();
  expect(leavesTransactionOpen('select commit from t')).toBeNull();
  expect(leavesTransactionOpen('select 1')).toBeNull();
  expect(
    leavesTransactionOpen('insert into t values (\'begin\', "commit") -- rollback'),
  ).toBeNull();
  expect(leavesTransactionOpen(`begin; ${'insert into t values (1); '.repeat(200)}`)).toBe(true);
  expect(isRead("select 'a; delete' -- b; c")).toBe(true);
  expect(settingsOf("set memory_limit = '64MB'")).toEqual([
    ['memory_limit', "set memory_limit = '64MB'"],
  ]);
  const several = "/* a; */ SET threads TO 1; delete from t; set session memory_limit = '1;2';";
  expect(settingsOf(several)).toEqual([
    ['threads', '/* a; */ SET threads TO 1'],
    ['memory_limit', "set session memory_limit = '1;2'"],
  ]);
  expect(settingsOf("insert into t values ('; set threads = 1')")).toEqual([]);
  expect(settingsOf("select e'\\'; set threads = 1 --'")).toEqual([]);
  expect(settingsOf('update t set a = 1')).toEqual([]);
  expect(isOfSession('create or replace TEMP table "t" (a int)')).toBe(true);
  expect(isOfSession('select 1; prepare p as select 2')).toBe(true);
  expect(isOfSession("insert into t values ('create temporary table t')")).toBe(false);
  expect(isOfSession('select temp from prepare')).toBe(false);
});

test('settings of a text with several statements are made again, failed ones not', async () => {
  const { calls, first, second } = begun();
  calls.adopt(first.transport);
  void calls.call('execute', 0, 'set threads = 1; set scan_strategy = default', undefined);
  await first.answer('execute', NONE);
  const failed = calls.call('execute', 0, 'set threads = 5000', undefined);
  await first.fail('execute', 'threads must be a whole number from 1 to 1024');
  await expectKind(failed, 'type');
  calls.adopt(second.transport);
  expect(await second.heard()).toEqual([
    'execute set threads = 1',
    'execute set scan_strategy = default',
  ]);
});

test.each(['create temporary table t (id int)', 'prepare p as select 1'])(
  'the loss of what `%s` made is told once',
  async (made) => {
    const { calls, first, second } = begun();
    calls.adopt(first.transport);
    void calls.call('execute', 0, made, undefined);
    await first.answer('execute', NONE);
    void calls.call('prepare', 0, 7, 'insert into t values (?)');
    await first.answer('prepare', { fields: [], parameters: [] });
    const read = calls.call('execute', 0, 'select * from t', undefined);
    const write = calls.call('execute', 0, 'insert into t values (1)', undefined);
    const elsewhere = calls.call('begin', 3);
    await first.heard();
    calls.hold();
    const later = calls.call('run', 0, 7, [2]);
    calls.adopt(second.transport);
    await expectKind(read, 'conflict', {
      mayHaveRun: false,
      message: expect.stringContaining('temporary tables'),
    });
    // It may have changed the table that was there before, or another one.
    await expectKind(write, 'unavailable', { mayHaveRun: true });
    await expectKind(later, 'conflict');
    expect(await second.heard()).toEqual(['begin']);
    await second.answer('begin', undefined);
    await elsewhere;
    // It was told: the application makes it again, or does without.
    void calls.call('execute', 0, made, undefined);
    expect(await second.heard()).toEqual([`execute ${made}`]);
    // The next loss is told again, where no call waits for it.
    await second.answer('execute', NONE);
    calls.closed(second.transport);
    await expectKind(calls.call('run', 0, 7, [3]), 'conflict');
    calls.adopt(new Leader().transport);
    void calls.call('execute', 0, 'select 1', undefined);
  },
);
