/**
 * The leader's worker: serves the links of other tabs beside its own page. Each link has a
 * connection of its own, which closes when the link's lock is free: the tab has gone.
 *
 * When the page closes the database, the statements of all tabs finish, or are cancelled by their tabs.
 * Other later calls are answered with `MOVED`: they were not run, and their tabs send them to the next
 * leader.
 */

import { nacreError, toErrorData, type ErrorData } from './errors.js';
import { nextTask } from './next-task.js';
import {
  MOVED,
  type Answer,
  type Arguments,
  type Awaitable,
  type ConnectionMethod,
  type Service,
} from './protocol.js';
import { serve, type ServerPort } from './server.js';
import {
  ENDING,
  linkName,
  sharedName,
  TABS_VERSION,
  type Channel,
  type Greeting,
  type Medium,
  type Notice,
} from './tabs.js';
import type { Durability } from './wire.js';

/** A connection to a database that others can connect to. */
export interface Shareable extends Service<ConnectionMethod> {
  another(): Abandonable;
}

/** The connection of a client that may go away without a word. */
export interface Abandonable extends Service<ConnectionMethod> {
  /** Cancels what runs, and closes. */
  abandon(): Promise<void>;
}

/** What the leader's page tells its worker. */
export interface Term {
  url: string;
  term: string;
  durability: Durability;
  /** The URL of the database's blobs; null without any. */
  blobs: string | null;
}

interface Link {
  channel: Channel;
  connection: Abandonable;
  /** Calls that have not ended, but those that wait for changes. */
  running: Set<Promise<unknown>>;
  /** Stops waiting for the link's lock. */
  forget: AbortController;
}

/** Serves the leader's page and the links of other tabs. */
export class Leading implements Service<ConnectionMethod> {
  readonly #own: Shareable;
  readonly #term: Term;
  readonly #medium: Medium;
  readonly #common: Channel;
  readonly #links = new Map<string, Link>();
  /** Connections of links that have ended, until they are closed. */
  readonly #ending = new Set<Promise<void>>();
  #isOver = false;

  constructor(own: Shareable, term: Term, medium: Medium) {
    this.#own = own;
    this.#term = term;
    this.#medium = medium;
    this.#common = medium.channel(sharedName(term.url));
    this.#common.onmessage = ({ data }: MessageEvent<Notice>) => {
      if (data.type === 'hello' && !this.#isOver) {
        this.#greet(data);
      }
    };
    this.#announce();
    void (own.call('stopped', []) as Promise<void>).then(() => {
      this.#isOver = true;
    });
  }

  call<M extends ConnectionMethod>(method: M, args: Arguments<M>): Awaitable<Answer<M>> {
    return method === 'close'
      ? (this.#close() as Promise<Answer<M>>)
      : this.#own.call(method, args);
  }

  #announce(): void {
    this.#common.postMessage({ type: 'leader', term: this.#term.term } satisfies Notice);
  }

  #greet(hello: Notice & { type: 'hello' }): void {
    if (hello.term !== null && hello.term !== this.#term.term) {
      this.#announce();
      return;
    }
    const known = this.#links.get(hello.link);
    if (known !== undefined) {
      known.channel.postMessage({ welcome: this.#term.term } satisfies Greeting);
      return;
    }
    const channel = this.#medium.channel(linkName(this.#term.url, hello.link));
    const refused = this.#refusal(hello);
    if (refused !== null) {
      channel.postMessage({ refused } satisfies Greeting);
      channel.close();
      return;
    }
    const connection = this.#own.another();
    const forget = new AbortController();
    const link = { channel, connection, running: new Set<Promise<unknown>>(), forget };
    this.#links.set(hello.link, link);
    serve(channel as ServerPort, {
      call: (method, args) => this.#pass(link, method as never, args as never),
    });
    // A message that cannot be read has no number to answer: the follower must not wait for it.
    channel.onmessageerror = () => this.#drop(hello.link, true);
    this.#medium.locks
      .request(linkName(this.#term.url, hello.link), { signal: forget.signal }, () => {
        this.#drop(hello.link, false);
      })
      .catch(() => {});
    channel.postMessage({ welcome: this.#term.term } satisfies Greeting);
  }

  #refusal({ version, durability, imports, blobs }: Notice & { type: 'hello' }): ErrorData | null {
    const { url } = this.#term;
    if (version !== TABS_VERSION) {
      const message = `${url} is open in a tab with another version of nacredb: reload or close it`;
      return toErrorData(nacreError('in_use', message));
    }
    if (imports) {
      return toErrorData(nacreError('already_exists', `${url} is open in another tab`));
    }
    if (durability !== this.#term.durability) {
      const message = `${url} is open in another tab with ${this.#term.durability} durability`;
      return toErrorData(nacreError('in_use', message));
    }
    if (blobs !== this.#term.blobs) {
      const message = `${url} is open in another tab with ${this.#term.blobs ?? 'no'} blobs`;
      return toErrorData(nacreError('in_use', message));
    }
    return null;
  }

  /** Runs a follower's call. */
  #pass<M extends ConnectionMethod>(
    { connection, running }: Link,
    method: M,
    args: Arguments<M>,
  ): Awaitable<Answer<M>> {
    if (this.#isOver && !ENDING.has(method)) {
      throw MOVED;
    }
    const answer = connection.call(method, args);
    if (!(answer instanceof Promise)) {
      return answer;
    }
    if (method === 'live' || method === 'nextLive') {
      // Closing ends live queries, which go on at the next leader.
      return answer.catch((error: unknown) => {
        throw this.#isOver ? MOVED : error;
      });
    }
    running.add(answer);
    const ended = (): void => void running.delete(answer);
    answer.then(ended, ended);
    return answer;
  }

  /** Ends a link, and what runs for its tab: nothing waits for the answer, and others for its locks. */
  #drop(id: string, tell: boolean): void {
    const link = this.#links.get(id);
    this.#links.delete(id);
    if (link !== undefined) {
      link.forget.abort();
      if (tell) {
        link.channel.postMessage({ refused: unreadable() } satisfies Greeting);
      }
      link.channel.close();
      const ended: Promise<void> = link.connection
        .abandon()
        .catch(() => {})
        .then(() => void this.#ending.delete(ended));
      this.#ending.add(ended);
    }
  }

  async #close(): Promise<void> {
    this.#isOver = true;
    const links = [...this.#links.values()];
    await Promise.all(this.#ending);
    await Promise.allSettled(
      links.map(async ({ connection, running }) => {
        await Promise.allSettled(running);
        await connection.call('close', []);
      }),
    );
    try {
      await this.#own.call('close', []);
    } finally {
      // After the replies of what was running, which leave at the end of this task.
      await new Promise<void>(nextTask);
      // A link that has been dropped meanwhile has no channel any more.
      this.#links.forEach(({ channel }) => channel.postMessage({ ended: true } satisfies Greeting));
      this.#common.close();
    }
  }
}

function unreadable(): ErrorData {
  return toErrorData(nacreError('io', 'the call could not be read by the tab that has the files'));
}
