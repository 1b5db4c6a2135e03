/**
 * The calls of a tab that shares a database, and where they go: to the present leader, or, while
 * there is none, into a queue for the next. What a call needs at a leader (its prepared statement,
 * its live query, settings) is made there again before it.
 *
 * When a leader is lost, nothing runs twice: what it had not been sent, or has refused, is sent to
 * the next one, and so is what only reads. A call that it may have run fails with `unavailable` and
 * `mayHaveRun`, one of an open transaction with `conflict`, one of a stream or a load with
 * `unavailable`.
 */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import {
  MAIN_SESSION,
  MOVED,
  type Answer,
  type Arguments,
  type ConnectionMethod,
} from '../../../worker/shared/protocol.js';
import { ENDING } from '../../../worker/shared/tabs.js';
import type { WireField, WireParameters, WireResult } from '../../../worker/shared/wire.js';
import type { MessageTransport } from './message-transport.js';
import { isOfSession, isRead, leavesTransactionOpen, settingsOf } from './sql-text.js';
import {
  begunBy,
  CANCELLABLE,
  isInMain,
  lostNames,
  lostTransaction,
  mayHaveRun,
  needOf,
  REPEATABLE,
  type TabCall,
} from './tab-call.js';

/** Timers, which tests replace. */
export interface Timers {
  now(): number;
  setTimeout(work: () => void, ms: number): unknown;
  clearTimeout(timer: never): void;
}

/** How long a call waits for a leader. */
export const WAIT_MS = 10_000;

/** A prepared statement or a live query, to be made at each leader. */
interface Known {
  session: number;
  sql: string;
  parameters?: WireParameters;
  /** The leader that has it. */
  link: MessageTransport | null;
  /** Its columns, once it was made again. */
  fields: WireField[] | null;
  /** Why it could not be made again. */
  failed: Promise<unknown>;
}

/** Rejects what a lost leader left unanswered; never seen outside. */
const LOST = nacreError('closed', 'the leader is gone');

/** What a loss of the main session is of. */
type Left = 'transaction' | 'names';

/** The calls of one tab. */
export class TabCalls {
  readonly #timers: Timers;
  readonly #url: string;
  /** Called when a call waits for a leader. */
  readonly #wanted: () => void;
  #link: MessageTransport | null = null;
  /** Whether the leader is probably gone: it may still answer, but gets no calls. */
  #isHeld = false;
  /** Whether the tab's functions are being created at the leader: it gets no calls until then. */
  #isMaking = false;
  #ended: NacreError | null = null;
  readonly #calls = new Set<TabCall>();
  readonly #statements = new Map<number, Known>();
  readonly #lives = new Map<number, Known>();
  /** Settings of the main session: the statement of each, by its name. */
  readonly #settings = new Map<string, string>();
  /** Functions that this tab has created, by name. */
  readonly #functions = new Map<string, Arguments<'createFunction'>>();
  /** Sessions, streams and loads that are begun, or will be by waiting calls. */
  readonly #begun = new Set<string>();
  /** Those that ended with their leader. */
  readonly #lost = new Set<string>();
  /**
   * What SQL has left in the main session and ends with it: a transaction, and names (temporary tables
   * and prepared statements).
   */
  readonly #left: Record<Left, 'none' | 'open' | 'lost'> = { transaction: 'none', names: 'none' };
  /** Which of them a call has failed for: later ones go on without. */
  #told: Left | null = null;
  #timer: unknown = null;

  constructor(url: string, timers: Timers, wanted: () => void) {
    this.#url = url;
    this.#timers = timers;
    this.#wanted = wanted;
  }

  call<M extends ConnectionMethod>(method: M, ...args: Arguments<M>): Promise<Answer<M>> {
    return new Promise((resolve, reject) => {
      const { now } = this.#timers;
      const call = { method, args, resolve, reject, link: null, isRepeated: false, since: now() };
      this.#take(call as TabCall);
    });
  }

  #take(call: TabCall): void {
    const refusal = this.#ended ?? this.#lack(call, false);
    this.#goOnWithout();
    if (refusal !== null) {
      call.reject(refusal);
      return;
    }
    const isEnding = ENDING.has(call.method);
    if (isEnding && (this.#withdraw(call) || this.#link === null)) {
      call.resolve(null as never);
      return;
    }
    this.#begin(call);
    this.#calls.add(call);
    // What a leader that is held runs can be ended.
    if (this.#isUp || isEnding) {
      this.#send(call);
    }
    if (!this.#isUp) {
      this.#wait();
    }
  }

  /** Whether there is a leader that gets calls. */
  get #isUp(): boolean {
    return this.#link !== null && !this.#isHeld && !this.#isMaking;
  }

  /** Whether there are calls that a leader should answer soon. */
  get isWaiting(): boolean {
    return [...this.#calls].some(({ method }) => method !== 'nextLive');
  }

  /** Whether there are calls for a leader. */
  get isWanted(): boolean {
    return this.#calls.size > 0;
  }

  /** Uses a leader, and gives up the one before. */
  adopt(link: MessageTransport): void {
    this.lose();
    this.#link = link;
    this.#isHeld = false;
    for (const statement of this.#settings.values()) {
      link.call('execute', MAIN_SESSION, statement, undefined).catch(() => {});
    }
    // Their modules load in their own time, and any call may need them.
    const made = [...this.#functions.values()].map((args) =>
      link.call('createFunction', ...args).catch(() => {}),
    );
    this.#isMaking = made.length > 0;
    if (!this.#isMaking) {
      this.#sendWaiting();
      return;
    }
    if (this.#calls.size > 0) {
      this.#wait();
    }
    void Promise.all(made).then(() => {
      if (this.#link === link) {
        this.#isMaking = false;
        this.#sendWaiting();
      }
    });
  }

  #sendWaiting(): void {
    if (this.#isUp) {
      [...this.#calls].filter(({ link }) => link === null).forEach((call) => this.#send(call));
    }
  }

  /** Sends nothing more to a leader that is probably gone. */
  hold(): void {
    this.#isHeld = true;
    if (this.#calls.size > 0) {
      this.#wait();
    }
  }

  /** The leader is there after all. */
  goOn(): void {
    if (this.#isHeld) {
      this.#isHeld = false;
      this.#sendWaiting();
    }
  }

  /** Gives up a leader that has closed: what it has not answered was not run. */
  closed(link: MessageTransport): void {
    if (this.#link === link) {
      this.lose(true);
    }
  }

  /** Gives up the leader. */
  lose(isClean = false): void {
    const link = this.#link;
    if (link === null) {
      return;
    }
    this.#link = null;
    this.#begun.forEach((begun) => this.#lost.add(begun));
    this.#begun.clear();
    const { transaction, names } = this.#left;
    this.#left.transaction = transaction === 'open' ? 'lost' : 'none';
    this.#left.names = names === 'none' ? 'none' : 'lost';
    for (const call of [...this.#calls]) {
      const wasSent = call.link !== null && !isClean;
      call.link = null;
      const refusal = this.#lack(call, wasSent) ?? (wasSent ? this.#doubt(call) : null);
      if (refusal !== null) {
        this.#settle(call);
        call.reject(refusal);
      } else if (wasSent && (ENDING.has(call.method) || call.method === 'close')) {
        this.#settle(call);
        call.resolve(null as never);
      } else {
        call.isRepeated ||= wasSent;
        this.#begin(call);
      }
    }
    this.#goOnWithout();
    link.fail(LOST);
    if (this.#calls.size > 0) {
      this.#wait();
    }
  }

  /** Fails the calls that wait for a leader. */
  failWaiting(error: NacreError, olderThanMs = 0): void {
    const latest = this.#timers.now() - olderThanMs;
    for (const call of [...this.#calls]) {
      if (call.link === null && call.since <= latest && call.method !== 'nextLive') {
        this.#settle(call);
        if (call.method === 'close') {
          call.resolve(null as never);
        } else {
          call.reject(error);
        }
      }
    }
  }

  /** Fails every call, and later ones. */
  end(error: NacreError): void {
    this.#ended ??= error;
    this.#link?.fail(error);
    [...this.#calls].forEach((call) => call.reject(error));
    this.#calls.clear();
    this.#timers.clearTimeout(this.#timer as never);
  }

  /** Forgets a loss that was told. */
  #goOnWithout(): void {
    if (this.#told !== null) {
      this.#left[this.#told] = 'none';
      this.#told = null;
    }
  }

  /** Notes what a call begins. */
  #begin(call: TabCall): void {
    const begun = begunBy(call);
    if (begun !== null) {
      this.#begun.add(begun);
      this.#lost.delete(begun);
    }
  }

  /** The error of a call that needs what is lost; null if it can be sent. */
  #lack(call: TabCall, wasSent: boolean): NacreError | null {
    const need = needOf(call);
    if (isInMain(call)) {
      return this.#lackOfSession(call, wasSent);
    }
    if (need === null || !this.#lost.has(need)) {
      return null;
    }
    if (need.startsWith('session')) {
      const isCommit = call.method === 'end' && call.args[1] === 'commit';
      return isCommit && wasSent ? mayHaveRun() : lostTransaction();
    }
    return call.method === 'finishLoad' && wasSent
      ? mayHaveRun()
      : nacreError('unavailable', `the ${need.split(' ')[0]} ended with the tab that ran it`);
  }

  #lackOfSession(call: TabCall, wasSent: boolean): NacreError | null {
    if (this.#left.transaction === 'lost') {
      const isEnd = leavesTransactionOpen(this.#text(call.method, call.args)) === false;
      this.#told = 'transaction';
      return isEnd && wasSent ? mayHaveRun() : lostTransaction();
    }
    if (this.#left.names !== 'lost' || (wasSent && this.#doubt(call) !== null)) {
      return null;
    }
    this.#told = 'names';
    return lostNames();
  }

  /** The error of a call that a lost leader may have run; null if it can be sent to the next. */
  #doubt(call: TabCall): NacreError | null {
    const { method, args } = call;
    if (ENDING.has(method) || method === 'close') {
      return null;
    }
    const session = method === 'begin' || needOf(call)?.startsWith('session');
    if (session && method !== 'end') {
      // Nothing of a transaction whose beginning was not answered is committed.
      return call.isRepeated ? lostTransaction() : null;
    }
    const isSafe = REPEATABLE.has(method) || isRead(this.#text(method, args));
    return isSafe && !call.isRepeated ? null : mayHaveRun();
  }

  /** The SQL text that a call runs. */
  #text(method: ConnectionMethod, args: readonly unknown[]): string {
    switch (method) {
      case 'execute':
      case 'arrow':
        return args[1] as string;
      case 'stream':
        return args[3] as string;
      case 'run':
        return this.#statements.get(args[1] as number)?.sql ?? '';
      case 'runStream':
        return this.#statements.get(args[3] as number)?.sql ?? '';
      default:
        return '';
    }
  }

  /** Takes back the waiting calls that a call ends; answers whether there were any. */
  #withdraw({ method, args }: TabCall): boolean {
    const [id] = args;
    if (method === 'endLive') {
      this.#lives.delete(id as number);
    }
    const isEnded = (call: TabCall): boolean => {
      switch (method) {
        case 'cancel':
          return CANCELLABLE.has(call.method) && call.args[3] === id;
        case 'endStream':
          return begunBy(call) === `stream ${id as number}`;
        case 'dropLoad':
          return needOf(call) === `load ${id as number}`;
        case 'endLive':
          return call.args[0] === id && call.method === 'nextLive';
        default:
          return false;
      }
    };
    const ended = [...this.#calls].filter((call) => call.link === null && isEnded(call));
    ended.forEach((call) => {
      this.#settle(call);
      call.reject(nacreError('cancelled', 'the call was cancelled before it was sent'));
    });
    return ended.length > 0;
  }

  #settle(call: TabCall): void {
    this.#calls.delete(call);
  }

  #send(call: TabCall): void {
    const link = this.#link!;
    call.link = link;
    this.#ask(call, link).then(
      (answer) => {
        if (call.link === link) {
          this.#settle(call);
          this.#keep(call);
          this.#forget(call, answer);
          call.resolve(answer as never);
        }
      },
      (error: unknown) => {
        if (call.link !== link || error === LOST) {
          return;
        }
        if (error === MOVED) {
          call.link = null;
          this.hold();
          return;
        }
        this.#settle(call);
        this.#forget(call, { done: true });
        call.reject(error as NacreError);
      },
    );
  }

  /** Forgets what has ended with a call. */
  #forget(call: TabCall, answer: unknown): void {
    const { method, args } = call;
    if (method === 'dropFunction') {
      this.#functions.delete((args[0] as string).toLowerCase());
    } else if (method === 'end') {
      this.#begun.delete(needOf(call)!);
      this.#statements.forEach(({ session }, id) => {
        if (session === args[0]) {
          this.#statements.delete(id);
        }
      });
    } else if ((answer as { done?: boolean } | null)?.done) {
      this.#begun.delete(begunBy(call) ?? (method === 'more' ? needOf(call)! : ''));
    } else if (method === 'endStream') {
      this.#begun.delete(`stream ${args[0] as number}`);
    } else if (method === 'endLive') {
      this.#begun.delete(`feed ${args[0] as number}`);
    } else if (method === 'finishLoad' || method === 'dropLoad') {
      this.#begun.delete(`load ${args[0] as number}`);
    }
  }

  /** Sends a call, after what it needs at this leader. */
  #ask(call: TabCall, link: MessageTransport): Promise<unknown> {
    const { method, args } = call;
    if (isInMain(call)) {
      this.#note(this.#text(method, args));
    }
    switch (method) {
      case 'prepare': {
        const [session, id, sql] = args as Arguments<'prepare'>;
        this.#statements.set(id, known(session, sql, link));
        return link.call(method, session, id, sql);
      }
      case 'run':
        return this.#run(args[1] as number, link, () => this.#pass(link, method, args));
      case 'runStream':
        return this.#run(args[3] as number, link, () => this.#pass(link, method, args));
      case 'live': {
        const [id, sql, parameters] = args as Arguments<'live'>;
        this.#lives.set(id, { ...known(MAIN_SESSION, sql, link), parameters });
        return link.call(method, id, sql, parameters);
      }
      case 'nextLive':
        return this.#nextLive(args[0] as number, link);
      case 'endLive':
        this.#lives.delete(args[0] as number);
        break;
      case 'finalize':
        this.#statements.delete(args[0] as number);
        break;
      case 'createFunction':
        return this.#create(args as Arguments<'createFunction'>, link);
    }
    return this.#pass(link, method, args);
  }

  async #create(args: Arguments<'createFunction'>, link: MessageTransport): Promise<void> {
    await link.call('createFunction', ...args);
    this.#functions.set(args[0].name.toLowerCase(), args);
  }

  #pass(link: MessageTransport, method: ConnectionMethod, args: readonly unknown[]) {
    return link.call(method, ...(args as never)) as Promise<unknown>;
  }

  /** Notes what a text may leave in the main session. */
  #note(text: string): void {
    const isOpen = leavesTransactionOpen(text);
    if (isOpen !== null) {
      this.#left.transaction = isOpen ? 'open' : 'none';
    }
    if (isOfSession(text)) {
      this.#left.names = 'open';
    }
  }

  /** Keeps the settings of the main session that a call has changed. */
  #keep(call: TabCall): void {
    if (isInMain(call)) {
      const settings = settingsOf(this.#text(call.method, call.args));
      settings.forEach(([name, statement]) => this.#settings.set(name, statement));
    }
  }

  /** Runs a prepared statement, which is prepared first where the leader does not have it. */
  async #run(id: number, link: MessageTransport, run: () => Promise<unknown>): Promise<unknown> {
    const statement = this.#statements.get(id);
    if (statement === undefined) {
      return run();
    }
    if (statement.link !== link) {
      statement.link = link;
      statement.failed = link.call('prepare', statement.session, id, statement.sql).then(
        ({ fields }) => {
          statement.fields = fields;
          return null;
        },
        (error: unknown) => {
          statement.link = null;
          return error;
        },
      );
    }
    try {
      return withFields(await run(), statement);
    } catch (error) {
      const failed = error === LOST || error === MOVED ? null : await statement.failed;
      throw failed instanceof NacreError ? failed : error;
    }
  }

  /** Answers the next result of a live query, which begins again at a new leader. */
  async #nextLive(id: number, link: MessageTransport): Promise<unknown> {
    const live = this.#lives.get(id);
    if (live === undefined || live.link === link) {
      const result = await link.call('nextLive', id);
      return live === undefined ? result : withFields(result, live);
    }
    live.link = link;
    const { fields, result } = await link.call('live', id, live.sql, live.parameters);
    live.fields = fields;
    return withFields(result, live);
  }

  /** Limits the time that calls wait for a leader. */
  #wait(): void {
    this.#wanted();
    this.#timer ??= this.#timers.setTimeout(() => {
      this.#timer = null;
      if (this.#isUp) {
        return;
      }
      const isThere = this.#link !== null && !this.#isHeld;
      if (!isThere) {
        this.lose();
      }
      const why = isThere
        ? 'the modules of functions are still loading'
        : `no tab that answers has ${this.#url} open`;
      this.failWaiting(nacreError('unavailable', `${why}: try again`), WAIT_MS / 2);
      if (this.#calls.size > 0) {
        this.#wait();
      }
    }, WAIT_MS);
  }
}

function known(session: number, sql: string, link: MessageTransport): Known {
  return { session, sql, link, fields: null, failed: Promise.resolve(null) };
}

/** Adds the columns of a statement that was made again, which the client has of the first time. */
function withFields(answer: unknown, { fields }: Known): unknown {
  const result = answer as Partial<WireResult> | null;
  return fields === null || result === null || result.fields !== undefined
    ? answer
    : { ...result, fields };
}
