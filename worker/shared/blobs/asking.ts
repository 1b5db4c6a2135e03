/**
 * Questions of a worker to its page: for credentials, or for a presigned URL. They travel over a channel of
 * their own, which the page hands to the worker before it opens the database.
 */

import { NacreError, nacreError, toErrorData, type ErrorData } from '../errors.js';
import type { Ask, BlobRequest } from './options.js';

/** A question as a message. */
interface Question {
  id: number;
  request: BlobRequest | null;
}

/** Its answer. */
type Reply = { id: number; value: unknown } | { id: number; error: ErrorData };

/** Answers the questions that come over a port. */
export function answerAt(port: MessagePort, ask: Ask): void {
  port.onmessage = async ({ data: { id, request } }: MessageEvent<Question>) => {
    try {
      port.postMessage({ id, value: await ask(request) } satisfies Reply);
    } catch (error) {
      port.postMessage({ id, error: toErrorData(error) } satisfies Reply);
    }
  };
}

/** What asks over a port; without one, there is no answer. */
export function askAt(port: MessagePort | null): Ask {
  let last = 0;
  const waiting = new Map<number, (reply: Reply) => void>();
  if (port !== null) {
    port.onmessage = ({ data }: MessageEvent<Reply>) => {
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    };
  }
  return (request) =>
    new Promise((resolve, reject) => {
      if (port === null) {
        reject(nacreError('io', 'the page answers no questions of its worker'));
        return;
      }
      const id = ++last;
      waiting.set(id, (reply) =>
        'error' in reply ? reject(new NacreError(reply.error)) : resolve(reply.value),
      );
      port.postMessage({ id, request } satisfies Question);
    });
}
