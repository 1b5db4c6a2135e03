// The tabs that share the database: whether this one has it open, and how to make another take over.
//
// A tab that is told to go ends its worker in the middle of whatever that does, and tells no other tab,
// as if it had crashed: what it had committed stays, and another tab opens the files.

import { signal } from '@preact/signals';

import { connection } from './connection';

/** Whether this tab has the database open, for all tabs; null where tabs do not share it. */
export const leads = signal<boolean | null>(null);
/** Milliseconds from telling the leader to go until this tab had the database open. */
export const tookOverMs = signal<number | null>(null);

const GO = 'the leader goes';

let channel: BroadcastChannel | undefined;
let askedAt: number | null = null;

/** Follows who leads. To be called once the database is open. */
export function watchTabs(): void {
  if (channel || typeof BroadcastChannel === 'undefined') return;
  const db = connection();
  leads.value = db.isLeader;
  db.onLeaderChange((isLeader) => {
    leads.value = isLeader;
    if (isLeader && askedAt !== null) tookOverMs.value = performance.now() - askedAt;
    askedAt = null;
  });
  channel = new BroadcastChannel('nacre demo');
  channel.onmessage = ({ data }: MessageEvent<string>) => {
    if (data === GO && db.isLeader) crash();
  };
}

/** Ends this page, and comes back. The package does not hear of it: it could say that it leaves. */
function crash(): void {
  const keep = (event: Event): void => event.stopImmediatePropagation();
  window.addEventListener('pagehide', keep, { capture: true });
  location.reload();
}

/** Opens the demo in another tab, which sends this tab's engine its calls. */
export function openTab(): void {
  window.open(location.href, '_blank', 'noopener');
}

/** Makes the tab that has the database open go, so that another one takes over. */
export function endLeader(): void {
  askedAt = performance.now();
  channel?.postMessage(GO);
}
