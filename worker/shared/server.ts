/**
 * Answers the protocol's calls over a message port: a dedicated worker's global scope, or the channel
 * of another tab's link. Replies that are available at once leave in one message; later ones leave
 * with the others of their task.
 */

import { nacreError, toErrorData, type ErrorData } from './errors.js';
import { pack, type Packed } from './packed.js';
import {
  MOVED,
  TRANSFER,
  type Answer,
  type Call,
  type Method,
  type Reply,
  type Service,
} from './protocol.js';

/** The part of a message port that a server uses. */
export interface ServerPort {
  onmessage: ((event: MessageEvent<Call[]>) => void) | null;
  postMessage(replies: (Reply | Packed)[], transfer: Transferable[]): void;
}

/** Answers every call that arrives at a port with what a service answers. */
export function serve(port: ServerPort, service: Service): void {
  const outbox = new Outbox(port);
  port.onmessage = (event) => event.data.forEach((call) => answer(call, service, outbox));
}

/** Calls the service at once, so that calls begin in the order they were sent. */
function answer<M extends Method>(
  { id, method, args }: Call<M>,
  service: Service,
  outbox: Outbox,
): void {
  const answered = (result: Answer<M>): void =>
    outbox.add({ id, result }, TRANSFER[method](result));
  const failed = (error: unknown): void =>
    outbox.add(error === MOVED ? { id, moved: true } : { id, error: toErrorData(error) }, []);
  try {
    mustBeKnown(method);
    const result = service.call(method, args);
    if (result instanceof Promise) {
      result.then(answered, failed);
    } else {
      answered(result);
    }
  } catch (error) {
    failed(error);
  }
}

/** Types guarantee this only as long as both sides come from one build. */
function mustBeKnown(method: string): void {
  if (!Object.hasOwn(TRANSFER, method)) {
    throw nacreError(
      'unsupported',
      `unknown method ${method}: the page and its worker come from different versions of nacredb`,
    );
  }
}

/** A reply, with what is transferred. */
type Sent = [reply: Reply, buffers: ArrayBuffer[]];

/** Replies waiting for the end of the task. */
class Outbox {
  readonly #port: ServerPort;
  #replies: Sent[] = [];

  constructor(port: ServerPort) {
    this.#port = port;
  }

  add(reply: Reply, buffers: ArrayBuffer[]): void {
    if (this.#replies.push([reply, buffers]) === 1) {
      queueMicrotask(() => this.#send());
    }
  }

  #send(): void {
    const replies = this.#replies;
    this.#replies = [];
    try {
      this.#post(replies);
    } catch {
      // Nothing has left. One answer that cannot be sent must not cost the others theirs.
      replies.forEach((reply) => this.#alone(reply));
    }
  }

  #alone([reply, buffers]: Sent): void {
    try {
      this.#post([[reply, buffers]]);
    } catch (thrown) {
      this.#refuse(reply.id, unsent(thrown));
    }
  }

  #refuse(id: number, error: ErrorData): void {
    try {
      this.#post([[{ id, error }, []]]);
    } catch {
      // The channel is closed: nothing waits for an answer.
    }
  }

  #post(replies: readonly Sent[]): void {
    this.#port.postMessage(
      pack(replies.map(([reply]) => reply)),
      replies.flatMap(([, buffers]) => buffers),
    );
  }
}

/** The call has run, and what it changed is there. */
function unsent(thrown: unknown): ErrorData {
  return {
    kind: 'limit',
    message: `the call has run, but its answer cannot be sent: ${String(thrown)}`,
    hint: 'it may be larger than what is left of the memory: use a stream, or ask for less',
    mayHaveRun: true,
  };
}
