/** How calls reach the engine: through a worker's messages, or directly where the engine is in this thread. */

import type {
  StorageReport,
  StreamForm,
  WireChunk,
  WirePrepared,
  WireResult,
  WireStream,
} from '../../../worker/shared/protocol.js';
import type { TableReport } from './inspect.js';

/** Parameters on their way to the engine: by position or by name, and nobody else's. JSON is a String object. */
export type WireParameters = readonly unknown[] | Readonly<Record<string, unknown>> | undefined;

/** Every method of the protocol with its arguments and its answer. */
export interface Methods {
  begin: (session: number) => void;
  end: (session: number, statement: 'commit' | 'rollback') => void;
  execute: (session: number, sql: string, parameters: WireParameters) => WireResult;
  arrow: (session: number, sql: string, parameters: WireParameters) => Uint8Array;
  prepare: (session: number, sql: string) => WirePrepared;
  run: (session: number, statement: number, parameters: WireParameters) => WireResult;
  finalize: (statement: number) => void;
  stream: (
    session: number,
    stream: number,
    form: StreamForm,
    sql: string,
    parameters: WireParameters,
  ) => WireStream;
  runStream: (
    session: number,
    stream: number,
    form: StreamForm,
    statement: number,
    parameters: WireParameters,
  ) => WireStream;
  more: (stream: number) => WireChunk;
  endStream: (stream: number) => void;
  inspect: () => TableReport[];
  storage: () => StorageReport;
  flush: () => void;
  close: () => void;
}

/** Carries calls. Answers of one session come in the order of its calls; failures are NacreErrors. */
export interface Transport {
  /** Whether the engine works while the caller does, so that it is worth asking ahead of need. */
  readonly ahead: boolean;
  call<M extends keyof Methods>(
    method: M,
    ...args: Parameters<Methods[M]>
  ): Promise<ReturnType<Methods[M]>>;
  /** Ends the transport after `close` was answered, or when opening failed. */
  end(): void;
}
