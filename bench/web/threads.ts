/** The page that asks workers whose own threads run engines, as `window.threads`. */

import { makeKeys } from './data';
import type { Request } from './workers/thread';

/** Each name is that of a worker's script. */
type Name = 'nacre' | 'sqlite';

const workers = new Map<Name, Worker>();

function ask(name: Name, request: Request): Promise<unknown> {
  const worker = workers.get(name)!;
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<{ answer?: unknown; failure?: string }>) =>
      data.failure === undefined ? resolve(data.answer) : reject(new Error(data.failure));
    worker.postMessage(request);
  });
}

const threads = {
  async open(name: Name, rows: number): Promise<void> {
    const url = new URL(`./${name}-thread.js`, import.meta.url);
    workers.set(name, new Worker(url, { type: 'module' }));
    await ask(name, { name: 'open', rows });
  },

  keys: makeKeys,

  /** Reads rows by their keys inside the worker. */
  points: (name: Name, keys: number[]) => ask(name, { name: 'points', keys }),

  commits: (name: Name, first: number, count: number) =>
    ask(name, { name: 'commits', first, count }),
};

export type Threads = typeof threads;

Object.assign(window, { threads });
