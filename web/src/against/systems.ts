// The systems of the comparison. Each one's code is fetched when its worker starts.

export interface System {
  id: 'nacre' | 'sqlite' | 'duckdb' | 'pglite';
  name: string;
  hue: string;
  /** Its settings, and what they cost or give. */
  settings: string;
  start(): Promise<Worker>;
}

export const SYSTEMS: System[] = [
  {
    id: 'nacre',
    name: 'Nacre',
    hue: 'sky',
    settings:
      'Default settings: a commit is durable when it is answered. Tables are loaded with insertRows.',
    start: async () => new (await import('./engines/nacre.worker?worker')).default(),
  },
  {
    id: 'sqlite',
    name: 'SQLite',
    hue: 'apricot',
    settings:
      'Tuned: pool of OPFS handles, write-ahead log, exclusive lock, synchronous = full, 64 MB of cache. Loaded with one prepared INSERT in a transaction per table, then ANALYZE. Decimals are doubles.',
    start: async () => new (await import('./engines/sqlite.worker?worker')).default(),
  },
  {
    id: 'duckdb',
    name: 'DuckDB-Wasm',
    hue: 'mint',
    settings:
      'Default settings, the build with WebAssembly exceptions, one thread. Loaded with COPY from CSV.',
    start: async () => new (await import('./engines/duckdb.worker?worker')).default(),
  },
  {
    id: 'pglite',
    name: 'PGlite',
    hue: 'lilac',
    settings:
      'Default settings on its pool of OPFS handles. Loaded with COPY from CSV, then ANALYZE. Its API has no prepared statements, so every call parses. Its first start creates a PostgreSQL cluster of many files.',
    start: async () => new (await import('./engines/pglite.worker?worker')).default(),
  },
];
