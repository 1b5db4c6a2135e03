/** What an application says about its blob store, beside the URL. */

/** Credentials of S3. */
export interface BlobCredentials {
  /** The public part of the key. */
  accessKeyId: string;
  /** The secret part of the key. */
  secretAccessKey: string;
  /** What comes with a temporary key. */
  sessionToken?: string | undefined;
  /** When they expire: a date, its text, or milliseconds since 1970. A minute before, new ones are asked for. */
  expires?: Date | string | number | undefined;
}

/** A request that is to be signed. */
export interface BlobRequest {
  /** The request's method. */
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Its URL, without a signature. */
  url: string;
  /** Headers that the signature may cover. Those that it covers must be sent as they are. */
  headers: Readonly<Record<string, string>>;
}

/** What is kept in a blob store, and for how long. */
export interface KeepOptions {
  /**
   * Milliseconds for which every state of the past stays, to be opened with `asOf`; one day by default, 0 for
   * none. Files that leave the database before they were uploaded are uploaded all the same.
   */
  historyMs?: number | undefined;
  /** Milliseconds for which blobs stay that readers without a lease may need; one day by default. */
  retentionMs?: number | undefined;
  /**
   * Of a database that is only read, milliseconds for which a lease keeps what it shows, and which it renews;
   * 60,000 by default, 0 for none. It writes a blob below `leases/`: without credentials, there is none.
   */
  leaseMs?: number | undefined;
  /** Bytes that may wait for their upload, beyond which statements that write fail; 4 GiB by default. */
  unsentLimit?: number | undefined;
  /**
   * Whether footers and indexes are fetched after opening, before anything reads them. By default they are,
   * unless the database is only read, and keeps what it fetches in memory.
   */
  warm?: boolean | undefined;
}

/** Options of a blob store. */
export interface BlobOptions extends KeepOptions {
  /** URL of the server, if it is not Amazon's. */
  endpoint?: string | undefined;
  /** Region of the bucket; `us-east-1` by default. */
  region?: string | undefined;
  /**
   * Whether the bucket is part of the path, and not of the host's name. By default it is, unless the
   * server is Amazon's and the bucket has no dot.
   */
  pathStyle?: boolean | undefined;
  /** Headers of every request. They are signed, too. In a browser, the CORS rules must allow them. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** How the server encrypts what is written, if not as the bucket is set up. */
  encryption?: 'managed' | { readonly kms: string } | undefined;
  /**
   * A key that only the application has: 32 random bytes, or a `CryptoKey` for HKDF that derives bits. With
   * it, blobs are encrypted before they are sent, and can only be read with it: if it is lost, so are they.
   */
  encryptionKey?: Uint8Array | CryptoKey | undefined;
  /**
   * Credentials, or a function that returns them. It is asked when they are needed first, a minute before
   * they expire, and when the server refuses them. Without any, requests are not signed.
   */
  credentials?: BlobCredentials | (() => BlobCredentials | Promise<BlobCredentials>) | undefined;
  /** Returns a presigned URL for a request, in place of credentials. It is asked again after a refusal. */
  presign?: ((request: BlobRequest) => string | Promise<string>) | undefined;
  /** How long a request may stand still, in milliseconds; 15,000 by default. */
  idleTimeoutMs?: number | undefined;
  /**
   * How long a call is repeated that failed in a way that may pass, in milliseconds; 5,000 by default. What
   * waits for it calls again until `blobPatience` is over: to fail at once, set both to 0.
   */
  retryForMs?: number | undefined;
}

/** A blob store, and how it is reached. */
export interface BlobsOptions extends BlobOptions {
  /** Where the files are: `s3://bucket/prefix`. Left out if that is the URL of the database itself. */
  url?: string | undefined;
}

/** `BlobsOptions` as a message can carry them: without functions, which are asked instead. */
export interface WireBlobs extends Omit<BlobOptions, 'credentials' | 'presign'> {
  url: string;
  /** The state of the past that is opened: a position of the log, or a time. */
  asOf?: number | Date | undefined;
  credentials?: BlobCredentials | 'asked' | undefined;
  presign?: 'asked' | undefined;
}

/** Asks the application for credentials, or with a request for its presigned URL. */
export type Ask = (request: BlobRequest | null) => Promise<unknown>;
