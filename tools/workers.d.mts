/** Types of `workers.mjs`, for the tests that use it. */
export interface Sending {
  at?: string;
  headers?: Record<string, string>;
}

export class Workers {
  static start(folder: string): Promise<Workers>;
  send(
    tenant: string | null,
    statements: [string, unknown[]?][],
    sending?: Sending,
  ): Promise<{ status: number; body: unknown }>;
  listen(tenant: string, at: string, receive: (text: string) => void): Promise<() => void>;
  kill(): void;
  stop(): Promise<void>;
}
