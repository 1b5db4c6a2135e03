/** What was uploaded. */
export interface StoredObject {
  bytes: Buffer;
  tag: string;
  number: string | undefined;
  modified: Date;
}

type Refuse = (method: string, key: string | null, token: string | null) => string | null;

export interface S3 {
  endpoint: string;
  objects: Map<string, StoredObject>;
  requests: string[];
  state: { isAway: boolean; refuse: Refuse; delayMs: number };
  stop(): Promise<void>;
}

export function startS3(options?: {
  origin?: string | null;
  refuse?: Refuse;
  delayMs?: number;
  server?: string | undefined;
}): Promise<S3>;
