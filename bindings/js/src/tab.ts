/**
 * One tab's part in sharing a database: it stands for election by waiting for the database's Web
 * Lock, leads while it holds it, and follows the tab that does until then.
 *
 * A leader that closes, navigates or crashes loses the lock, and the browser gives it to the next
 * tab in line, which opens the files. A page that is frozen, or kept to go back to, gives the lock up
 * before. Where that fails, a follower that waits for answers and sees no sign of life takes the
 * lock. The browser gives the files to one worker at a time, so the new leader cannot open them
 * before the old worker is gone: while a frozen page has them, the database is unavailable, and when
 * it goes on it finds that its lock is taken, and ends its worker.
 */

import { NacreError, nacreError, toErrorData } from '../../../worker/shared/errors.js';
import type { Answer, Arguments, ConnectionMethod } from '../../../worker/shared/protocol.js';
import {
  linkName,
  sharedName,
  TABS_VERSION,
  type Channel,
  type Greeting,
  type Medium,
  type Notice,
} from '../../../worker/shared/tabs.js';
import type { OpenRequest } from '../../../worker/shared/wire.js';
import { MessageTransport, type ClientPort } from './message-transport.js';
import { TabCalls, type Timers } from './tab-calls.js';
import type { Leadership, Transport } from './transport.js';

/** How often a follower that waits asks for a sign of life. */
const TICK_MS = 1_000;
/** How many times the leader may leave that unanswered. */
const MAX_MISSES = 5;
/** Longest time that a follower waits for another to take the lock. */
const CLAIM_MS = 500;
/** How long a tab that took the lock waits for the files. */
const PATIENCE_MS = 9_000;

/** What a tab needs of its surroundings, which tests replace. */
export interface TabHost extends Medium, Timers {
  /** Starts the worker of a leader. Ending the transport ends the worker. */
  startWorker(): MessageTransport;
  uuid(): string;
  random(): number;
  /** Calls back when the page is about to stand still, and when it goes on. Answers a function that stops it. */
  onStandstill(stop: () => void, goOn: () => void): () => void;
}

/** A claim to the lock. */
interface Candidacy {
  /** Gives up the lock, or the place in its queue. */
  withdraw: () => void;
  isElected: boolean;
  isOver: boolean;
  isTaken: boolean;
}

/** The way to a leader: to the own worker, or to that of another tab. */
interface Link {
  transport: MessageTransport;
  /** Null until a leader greets it. */
  term: string | null;
  isUp: boolean;
  /** Asks a leader to greet it. */
  hello: () => void;
}

/** A tab that shares a database. */
export class Tab implements Transport, Leadership {
  readonly ahead = true;
  readonly leadership: Leadership = this;
  readonly #host: TabHost;
  readonly #calls: TabCalls;
  #request: OpenRequest;
  readonly #common: Channel;
  readonly #listeners = new Set<(isLeader: boolean) => void>();
  readonly #forgetStandstill: () => void;
  #candidacy: Candidacy | null = null;
  /**
   * A worker that starts while the tab waits to hear whether it leads: a browser may take as long to
   * grant the lock. Null once it is used, or another tab leads.
   */
  #spare: MessageTransport | null = null;
  #link: Link | null = null;
  /** The term that was seen last. */
  #term: string | null = null;
  /** Signs of life that have been missed. */
  #misses = 0;
  #ticking: unknown = null;
  #claiming: unknown = null;
  #isAway = false;
  #hasEnded = false;
  /** Settles `start`. */
  #started: { resolve: () => void; reject: (error: NacreError) => void } | null = null;

  constructor(host: TabHost, request: OpenRequest) {
    this.#host = host;
    this.#request = request;
    this.#calls = new TabCalls(request.url, host, () => this.#wanted());
    this.#common = host.channel(sharedName(request.url));
    this.#common.onmessage = ({ data }: MessageEvent<Notice>) => this.#hear(data);
    this.#forgetStandstill = host.onStandstill(
      () => this.#leave(),
      () => this.#return(),
    );
  }

  /** Answers when the database is open, here or in another tab. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      this.#stand();
      this.#seek();
      try {
        this.#spare = this.#host.startWorker();
      } catch {
        // A tab that follows needs none; one that leads tries again, and reports it.
      }
    });
  }

  get isLeader(): boolean {
    return this.#candidacy?.isElected === true && this.#link?.isUp === true;
  }

  onChange(listener: (isLeader: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  call<M extends ConnectionMethod>(method: M, ...args: Arguments<M>): Promise<Answer<M>> {
    return this.#calls.call(method, ...args);
  }

  end(): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    this.#calls.end(nacreError('closed', 'the database is closed'));
    this.#resign();
    this.#endSpare();
    this.#quiet();
    this.#forgetStandstill();
    this.#listeners.clear();
    this.#common.close();
  }

  /** Waits for the lock, or takes it from the tab that has it. */
  #stand(take = false): void {
    this.#candidacy?.withdraw();
    const abort = new AbortController();
    const candidacy: Candidacy = {
      isElected: false,
      isOver: false,
      isTaken: take,
      withdraw: () => {
        candidacy.isOver = true;
        abort.abort();
      },
    };
    this.#candidacy = candidacy;
    const elected = (): Promise<void> | undefined => {
      if (candidacy.isOver) {
        return undefined;
      }
      return new Promise<void>((release) => {
        candidacy.isElected = true;
        candidacy.withdraw = () => {
          candidacy.isOver = true;
          release();
        };
        this.#lead(candidacy);
      });
    };
    // A request that takes the lock cannot be aborted.
    const options = take ? { steal: true } : { signal: abort.signal };
    this.#host.locks.request(sharedName(this.#request.url), options, elected).catch((error) => {
      if (candidacy.isOver) {
        return;
      }
      candidacy.isOver = true;
      if ((error as Error).name === 'AbortError') {
        // Another tab has taken the lock, perhaps before this one knew that it had it.
        this.#again();
      } else {
        this.#failed(new NacreError(toErrorData(error, 'the lock of the database')));
      }
    });
  }

  /** Opens the files. Meanwhile, what the leader before has answered still arrives. */
  #lead(candidacy: Candidacy): void {
    this.#quiet();
    this.#calls.hold();
    if (this.#link?.isUp === false) {
      this.#link.transport.end();
    }
    const term = this.#host.uuid();
    const transport = this.#spare ?? this.#host.startWorker();
    this.#spare = null;
    const link: Link = { transport, term, isUp: false, hello: () => {} };
    this.#link = link;
    this.#notice({ type: 'here', term });
    const request: OpenRequest = { ...this.#request, term };
    if (candidacy.isTaken) {
      request.patienceMs = PATIENCE_MS;
    }
    transport.call('open', request).then(
      () => {
        if (this.#link === link) {
          this.#up(link, term);
          // The engine or its worker has failed: another tab may try, or this one again.
          const failed = (): void => void (this.#link === link && this.#again());
          transport.call('stopped').then(failed, failed);
        }
      },
      (error: NacreError) => {
        if (this.#link === link) {
          this.#failed(error);
        }
      },
    );
  }

  /** Stands for election anew. */
  #again(): void {
    this.#resign();
    this.#stand();
    this.#seek();
  }

  /** A link has a leader that has the files open. */
  #up(link: Link, term: string): void {
    this.#endSpare();
    link.isUp = true;
    link.term = term;
    // It exists from now on.
    this.#request = { ...this.#request, import: undefined };
    this.#calls.adopt(link.transport);
    const isOther = this.#term !== null && this.#term !== term;
    this.#term = term;
    this.#started?.resolve();
    this.#started = null;
    if (isOther) {
      this.#listeners.forEach((listener) => listener(this.isLeader));
    }
  }

  /** The database could not be opened, here or in the tab that leads. */
  #failed(error: NacreError): void {
    if (this.#started !== null) {
      this.#started.reject(error);
      this.end();
      return;
    }
    this.#resign();
    const data = toErrorData(error);
    this.#calls.failWaiting(
      data.kind === 'in_use' ? new NacreError({ ...data, kind: 'unavailable' }) : error,
    );
    this.#watch();
  }

  /** Gives up the lead, or the link to the leader, and the place in the queue. */
  #resign(): void {
    const [link, candidacy] = [this.#link, this.#candidacy];
    this.#link = null;
    this.#candidacy = null;
    this.#calls.lose();
    // Ends the worker, if it is the own one, before another tab gets the lock.
    link?.transport.end();
    if (candidacy?.isElected && link?.term) {
      this.#notice({ type: 'bye', term: link.term });
    }
    candidacy?.withdraw();
  }

  /** Looks for a leader. */
  #seek(): void {
    this.#drop();
    const id = this.#host.uuid();
    const channel = this.#host.channel(linkName(this.#request.url, id));
    let release = (): void => {};
    const port = new LinkPort(channel, (greeting) => this.#greeted(link, greeting));
    const transport = new MessageTransport(port, () => {
      release();
      channel.close();
    });
    const link: Link = { transport, term: null, isUp: false, hello: () => {} };
    this.#link = link;
    const held = new Promise<void>((resolve) => (release = resolve));
    const { durability = 'strict' } = this.#request.options;
    const imports = this.#request.import !== undefined;
    const blobs = this.#request.blobs?.url ?? null;
    // A leader that finds the link's lock free takes its tab for gone.
    const isHeld = this.#host.locks.request(linkName(this.#request.url, id), {}, () => {
      const hello = {
        type: 'hello',
        link: id,
        version: TABS_VERSION,
        durability,
        imports,
        blobs,
      } as const;
      link.hello = () => this.#notice({ ...hello, term: link.term });
      if (this.#link === link) {
        link.hello();
      }
      return held;
    });
    isHeld.catch(() => {});
    this.#watch();
  }

  /** Gives up the link to a leader that is gone. */
  #drop(): void {
    this.#calls.lose();
    this.#link?.transport.end();
    this.#link = null;
  }

  #greeted(link: Link, greeting: Greeting): void {
    if (this.#link !== link) {
      if ('ended' in greeting) {
        this.#calls.closed(link.transport);
      }
      return;
    }
    this.#misses = 0;
    if ('welcome' in greeting) {
      if (link.isUp) {
        this.#calls.goOn();
      } else {
        this.#up(link, greeting.welcome);
      }
    } else if ('ended' in greeting) {
      this.#calls.lose(true);
      this.#seek();
    } else {
      this.#failed(new NacreError(greeting.refused));
    }
  }

  #hear(notice: Notice): void {
    const isLeading = this.#candidacy?.isElected === true;
    if (notice.type === 'hello') {
      if (isLeading && this.#link?.term) {
        this.#notice({ type: 'here', term: this.#link.term });
      }
      return;
    }
    if (isLeading || this.#isAway) {
      return;
    }
    this.#misses = 0;
    if (notice.type === 'claim') {
      this.#host.clearTimeout(this.#claiming as never);
      return;
    }
    const link = this.#link;
    const isOther = link?.isUp === true && link.term !== notice.term;
    if (notice.type === 'leader' && (link === null || !link.isUp || isOther)) {
      this.#seek();
    } else if (notice.type === 'bye' ? link?.term === notice.term : isOther) {
      this.#calls.hold();
    }
  }

  /** A call waits for a leader, for which the tab may have to stand again. */
  #wanted(): void {
    if (this.#candidacy === null && !this.#isAway && !this.#hasEnded) {
      this.#stand();
      this.#seek();
    }
  }

  /** Looks now and then whether the leader still gives signs of life. */
  #watch(): void {
    this.#host.clearTimeout(this.#ticking as never);
    this.#ticking = this.#host.setTimeout(() => {
      this.#tick();
      if (!this.#hasEnded && !this.#isAway && this.#candidacy?.isElected !== true) {
        this.#watch();
      }
    }, TICK_MS);
  }

  #tick(): void {
    const link = this.#link;
    if (link === null && this.#calls.isWanted) {
      this.#wanted();
    }
    if (link === null || (link.isUp && !this.#calls.isWaiting)) {
      this.#misses = 0;
      return;
    }
    if (this.#misses++ < MAX_MISSES) {
      link.hello();
      return;
    }
    this.#misses = 0;
    this.#calls.hold();
    this.#claiming = this.#host.setTimeout(() => {
      this.#notice({ type: 'claim' });
      this.#stand(true);
    }, this.#host.random() * CLAIM_MS);
  }

  #endSpare(): void {
    this.#spare?.end();
    this.#spare = null;
  }

  #quiet(): void {
    this.#misses = 0;
    this.#host.clearTimeout(this.#ticking as never);
    this.#host.clearTimeout(this.#claiming as never);
  }

  /** The page is about to stand still: others must be able to go on. */
  #leave(): void {
    if (!this.#isAway && !this.#hasEnded) {
      this.#isAway = true;
      this.#quiet();
      this.#resign();
      this.#endSpare();
    }
  }

  #return(): void {
    if (this.#isAway && !this.#hasEnded) {
      this.#isAway = false;
      this.#stand();
      this.#seek();
    }
  }

  #notice(notice: Notice): void {
    this.#common.postMessage(notice);
  }
}

/** A link's channel as a client sees it: replies only. */
class LinkPort implements ClientPort {
  onmessage: ClientPort['onmessage'] = null;
  onmessageerror: ClientPort['onmessageerror'] = null;
  readonly #channel: Channel;

  constructor(channel: Channel, greeted: (greeting: Greeting) => void) {
    this.#channel = channel;
    channel.onmessage = (event) =>
      Array.isArray(event.data) ? this.onmessage?.(event) : greeted(event.data);
    channel.onmessageerror = (event) => this.onmessageerror?.(event);
  }

  postMessage(calls: unknown[]): void {
    this.#channel.postMessage(calls);
  }
}
