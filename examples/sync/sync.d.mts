import type { Database } from 'nacredb';

/** A version of a note. */
export interface Version {
  at: bigint;
  client: string;
}

export class Notes {
  static open(db: Database, url: string, client: string): Promise<Notes>;
  list(): Promise<{ id: string; body: string }[]>;
  write(id: string, body: string): Promise<void>;
  delete(id: string): Promise<void>;
  run(options: { signal: AbortSignal; everyMs?: number }): Promise<void>;
  pull(): Promise<void>;
}

export function isLater(a: Version, b: Version): boolean;
