/** Types of `versitygw.mjs`. */

/** A running S3 server. */
export interface Gateway {
  endpoint: string;
  /** Has a folder for each bucket. */
  folder: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
  stop(): Promise<void>;
}

/** Starts a server with an empty bucket; `null` where there is no Go to install it with. */
export function startGateway(options?: {
  bucket?: string;
  origin?: string;
}): Promise<Gateway | null>;
