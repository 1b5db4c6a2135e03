/**
 * Answers the protocol's calls over a message port: a dedicated worker's global scope, or the channel
 * of another tab's link. Replies that are available at once leave in one message; later ones leave
 * with the others of their task.
 */

import { nacreError, toErrorData } from './errors.js';
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

/** Replies waiting for the end of the task. */
class Outbox {
  readonly #port: ServerPort;
  #replies: Reply[] = [];
  #buffers: ArrayBuffer[] = [];

  constructor(port: ServerPort) {
    this.#port = port;
  }

  add(reply: Reply, buffers: ArrayBuffer[]): void {
    if (this.#replies.length === 0) {
      queueMicrotask(() => this.#send());
    }
    this.#replies.push(reply);
    this.#buffers.push(...buffers);
  }

  #send(): void {
    const replies = this.#replies;
    const buffers = this.#buffers;
    this.#replies = [];
    this.#buffers = [];
    this.#port.postMessage(pack(replies), buffers);
  }
}
