/**
 * A task of its own for work that goes on: messages and timers that are due come first. Timers would
 * do, but browsers delay nested ones by 4 ms.
 */

/** Runs work in a later task of the event loop. */
export type NextTask = (work: () => void) => void;

/** Node has a global for it, which browsers lack. */
export const nextTask: NextTask =
  (globalThis.setImmediate as NextTask | undefined) ?? throughMessages();

/** Made on first use: most workers never need it. */
function throughMessages(): NextTask {
  if (typeof MessageChannel === 'undefined') {
    return (work) => void setTimeout(work, 0);
  }
  let channel: MessageChannel | null = null;
  const queue: (() => void)[] = [];
  return (work) => {
    if (channel === null) {
      channel = new MessageChannel();
      channel.port1.onmessage = () => queue.shift()!();
    }
    queue.push(work);
    channel.port2.postMessage(null);
  };
}
