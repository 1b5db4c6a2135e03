/** What a tab that shares a database needs of the browser. */

import { browserMedium } from '../../../worker/shared/tabs.js';
import type { MessageTransport } from './message-transport.js';
import type { TabHost } from './tab.js';

/** Whether tabs can share a database here. */
export function canShare(): boolean {
  return typeof BroadcastChannel !== 'undefined' && globalThis.navigator?.locks !== undefined;
}

/** The browser's, with a function that starts a worker. */
export function browserHost(startWorker: () => MessageTransport): TabHost {
  return {
    ...browserMedium(),
    startWorker,
    now: () => performance.now(),
    setTimeout: (work, ms) => setTimeout(work, ms),
    clearTimeout: (timer) => clearTimeout(timer),
    uuid: () => crypto.randomUUID(),
    random: Math.random,
    onStandstill,
  };
}

/**
 * A frozen page runs nothing until it goes on, and neither does its worker; a page that is kept to
 * go back to may be dropped at any time.
 */
function onStandstill(stop: () => void, goOn: () => void): () => void {
  if (typeof document === 'undefined') {
    return () => {};
  }
  const seen = (): void => void (document.visibilityState === 'visible' && goOn());
  const listeners: [EventTarget, string, () => void][] = [
    [document, 'freeze', stop],
    [window, 'pagehide', stop],
    [document, 'resume', goOn],
    [window, 'pageshow', goOn],
    [document, 'visibilitychange', seen],
  ];
  listeners.forEach(([target, type, listener]) => target.addEventListener(type, listener));
  return () => {
    listeners.forEach(([target, type, listener]) => target.removeEventListener(type, listener));
  };
}
