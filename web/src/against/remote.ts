// The page's side of one system's worker: sends jobs, one at a time, and answers their results.

import type { Answer, Job, LoadColumn, Reply, Request } from './protocol';

export class Remote {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { done(answer: Answer): void; failed(error: Error): void }>();
  #next = 1;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      const call = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ('failure' in data) call?.failed(new Error(data.failure));
      else call?.done(data.answer);
    };
    worker.onerror = (event) => {
      this.#failAll(event.message || 'its worker could not be loaded');
    };
  }

  run(job: Job, columns?: LoadColumn[]): Promise<Answer> {
    const request: Request = { id: this.#next++, job, columns };
    return new Promise((done, failed) => {
      this.#waiting.set(request.id, { done, failed });
      this.#worker.postMessage(request);
    });
  }

  /** Ends the worker. Calls that are waiting fail. */
  end(): void {
    this.#worker.terminate();
    this.#failAll('stopped');
  }

  #failAll(reason: string): void {
    for (const { failed } of this.#waiting.values()) failed(new Error(reason));
    this.#waiting.clear();
  }
}
