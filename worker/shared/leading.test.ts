/** The leader's worker while its page closes the database. */

import { expect, test } from 'vitest';
import { nacreError } from './errors.js';
import { Leading, type Abandonable, type Shareable } from './leading.js';
import type { Call } from './protocol.js';
import { linkName, TABS_VERSION, type Channel } from './tabs.js';

const TERM = { url: 'opfs://test', term: 'first', durability: 'strict', blobs: null } as const;

/** A channel whose messages the test reads. */
class TestChannel implements Channel {
  onmessage: Channel['onmessage'] = null;
  onmessageerror: Channel['onmessageerror'] = null;
  readonly sent: unknown[] = [];
  #isClosed = false;

  postMessage(message: unknown): void {
    if (this.#isClosed) {
      throw new DOMException('the channel is closed', 'InvalidStateError');
    }
    this.sent.push(message);
  }

  close(): void {
    this.#isClosed = true;
  }

  hear(data: unknown): void {
    this.onmessage!({ data } as MessageEvent);
  }
}

/** The connection of a tab, with a statement that runs until it is cancelled. */
class Endless implements Abandonable {
  #cancel = (_: Error): void => {};

  call(method: string): never {
    if (method === 'execute') {
      return new Promise((_, reject) => (this.#cancel = reject)) as never;
    }
    if (method === 'cancel') {
      this.#cancel(nacreError('cancelled', 'cancelled'));
    }
    return undefined as never;
  }

  async abandon(): Promise<void> {
    this.call('cancel');
  }
}

/** A leader with two tabs, `a` and `b`. `leave` frees the lock of a tab's link. */
function leading() {
  const channels = new Map<string, TestChannel>();
  const held = new Map<string, () => unknown>();
  const channel = (name: string) => {
    const made = new TestChannel();
    channels.set(name, made);
    return made;
  };
  const request = (name: string, _: object, hold: (lock: unknown) => unknown) => {
    held.set(name, () => hold(null));
    return Promise.resolve();
  };
  const own = {
    call: (method: string) => (method === 'stopped' ? new Promise(() => {}) : undefined),
    another: () => new Endless(),
  };
  const leader = new Leading(own as unknown as Shareable, TERM, { channel, locks: { request } });
  const common = [...channels.values()][0]!;
  const link = (id: string) => {
    const { durability, blobs } = TERM;
    const hello = { type: 'hello', link: id, term: null, version: TABS_VERSION };
    common.hear({ ...hello, durability, imports: false, blobs });
    return channels.get(linkName(TERM.url, id))!;
  };
  const leave = (id: string) => held.get(linkName(TERM.url, id))!();
  return { leader, a: link('a'), b: link('b'), leave };
}

const call = (id: number, method: string) => [{ id, method, args: [] }] as unknown as Call[];
const later = () => new Promise((resolve) => setTimeout(resolve, 10));

test('closing waits for a statement of another tab, which that tab can cancel', async () => {
  const { leader, a } = leading();
  a.hear(call(1, 'execute'));
  let isClosed = false;
  const closing = (leader.call('close', []) as Promise<void>).then(() => (isClosed = true));
  a.hear(call(2, 'flush'));
  await later();
  expect(isClosed).toBe(false);
  expect(a.sent.slice(1)).toEqual([[{ id: 2, moved: true }]]);
  a.hear(call(3, 'cancel'));
  await closing;
  const cancelled = { id: 1, error: expect.objectContaining({ kind: 'cancelled' }) };
  expect(a.sent.slice(2).flat()).toEqual([
    { id: 3, result: undefined },
    cancelled,
    { ended: true },
  ]);
});

test('a tab that goes while the leader closes does not keep the news from others', async () => {
  const { leader, a, b, leave } = leading();
  a.hear(call(1, 'execute'));
  const closing = leader.call('close', []);
  leave('a');
  await closing;
  expect(a.sent).toEqual([{ welcome: 'first' }]);
  expect(b.sent).toEqual([{ welcome: 'first' }, { ended: true }]);
});
