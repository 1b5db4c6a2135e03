import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { workerTransport } from '../src/worker-transport.js';
import { expectKind } from './testing.js';

/** A worker whose script does nothing by itself. */
class SilentWorker extends EventTarget {
  onmessage: ((event: MessageEvent) => void) | null = null;
  isTerminated = false;

  postMessage(): void {}

  terminate(): void {
    this.isTerminated = true;
  }

  say(data: unknown): void {
    const event = new MessageEvent('message', { data });
    this.onmessage?.(event);
    this.dispatchEvent(event);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a worker that never says anything is unavailable after half a minute', async () => {
  const worker = new SilentWorker();
  const transport = workerTransport(worker as unknown as Worker);
  const failed = expectKind(transport.call('flush'), 'unavailable', { retryable: true });
  await vi.advanceTimersByTimeAsync(29_000);
  expect(worker.isTerminated).toBe(false);
  await vi.advanceTimersByTimeAsync(2_000);
  await failed;
  expect(worker.isTerminated).toBe(true);
});

test('a worker that has begun may take any time', async () => {
  const worker = new SilentWorker();
  const transport = workerTransport(worker as unknown as Worker);
  const flushed = transport.call('flush');
  worker.say([]);
  await vi.advanceTimersByTimeAsync(600_000);
  worker.say([{ id: 1, result: undefined }]);
  expect(await flushed).toBeUndefined();
  expect(worker.isTerminated).toBe(false);
});
