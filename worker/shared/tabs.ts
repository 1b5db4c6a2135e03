/**
 * How the tabs that share a database find each other: names, messages, and the parts of the
 * platform that both sides use.
 *
 * The tab that holds the database's Web Lock is the leader: its worker has the files open. Every
 * other tab reaches that worker over a link: a channel that only the two of them use, and a Web Lock
 * that the follower holds for as long as the link lasts, so that the leader learns of its end. All
 * tabs hear the notices of one common channel.
 *
 * A link is greeted only by a leader that has the files open, and the browser gives the files to one
 * worker at a time. So no call is ever heard by two leaders that could both run it.
 */

import type { ErrorData } from './errors.js';
import type { ConnectionMethod } from './protocol.js';
import type { Durability } from './wire.js';

/** Raised with every change after which tabs of two versions could misunderstand each other. */
export const TABS_VERSION = 3;

/** Name of a database's lock, and of its common channel. */
export function sharedName(url: string): string {
  return `nacredb ${url}`;
}

/** Name of a link's lock, and of its channel. */
export function linkName(url: string, link: string): string {
  return `${sharedName(url)} ${link}`;
}

/** What a tab says to all others. A term is a time in which one tab leads. */
export type Notice =
  /**
   * Asks the leader's worker to greet a link, and the leader's page for a sign of life. A link that
   * was greeted says in which term; another leader does not greet it.
   */
  | {
      type: 'hello';
      link: string;
      term: string | null;
      version: number;
      durability: Durability;
      imports: boolean;
      /** The URL of the database's blobs; null without any. */
      blobs: string | null;
    }
  /** The page that holds the lock lives; its worker may still be opening the files. */
  | { type: 'here'; term: string }
  /** The leader's worker has the files open. */
  | { type: 'leader'; term: string }
  /** A term is over. */
  | { type: 'bye'; term: string }
  /** A tab is about to take the lock from one that gives no sign of life. */
  | { type: 'claim' };

/** What the leader's worker says over a link, beside replies. */
export type Greeting =
  | { welcome: string }
  | { refused: ErrorData }
  /** The leader has closed: whatever it has not answered was not run. */
  | { ended: true };

/**
 * Calls that are about another one, and have nothing to do where that is gone. A leader that closes
 * still takes them.
 */
export const ENDING: ReadonlySet<ConnectionMethod> = new Set([
  'cancel',
  'progress',
  'endStream',
  'dropLoad',
  'endLive',
]);

/** A `BroadcastChannel`. */
export interface Channel {
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

/** The part of `navigator.locks` that is used. */
export interface Locks {
  request(
    name: string,
    options: { steal?: boolean; signal?: AbortSignal },
    hold: (lock: unknown) => unknown,
  ): Promise<unknown>;
}

/** What links tabs. */
export interface Medium {
  locks: Locks;
  channel(name: string): Channel;
}

/** The browser's. */
export function browserMedium(): Medium {
  return { locks: navigator.locks, channel: (name) => new BroadcastChannel(name) };
}
