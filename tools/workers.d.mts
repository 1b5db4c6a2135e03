/** Types of `workers.mjs`, for the tests that use it. */
export interface Sending {
  at?: string;
  headers?: Record<string, string>;
}

export class Workers {
  static start(folder: string, options?: { worker?: string; className?: string }): Promise<Workers>;
  send(
    tenant: string | null,
    statements: [string, unknown[]?][],
    sending?: Sending,
  ): Promise<{ status: number; body: unknown }>;
  begin(tenant: string, at: string, headers: Record<string, string>): () => void;
  listen(tenant: string, at: string, receive: (text: string) => void): Promise<() => void>;
  residentBytes(): number;
  kill(): void;
  stop(): Promise<void>;
}
