// The part of DuckDB-Wasm's blocking API that the comparison uses. The package has this build for
// browsers, but exports neither it nor its types; `vite.config.ts` knows its file.

declare module 'duckdb-blocking' {
  export interface Table {
    numRows: number;
    schema: { fields: { name: string; type: { typeId: number } }[] };
    getChildAt(at: number): { get(row: number): unknown } | null;
  }
  export interface Connection {
    query(sql: string): Table;
    prepare(sql: string): { query(...parameters: unknown[]): Table };
  }
  export interface Bindings {
    instantiate(onProgress: () => void): Promise<unknown>;
    open(config: {
      path: string;
      accessMode?: number;
      useDirectIO?: boolean;
      query?: object;
    }): void;
    connect(): Connection;
    getVersion(): string;
    registerFileText(name: string, text: string): void;
    dropFile(name: string): void;
    prepareDBFileHandle(path: string, protocol: number): Promise<void>;
  }
  interface Bundle {
    mainModule: string;
    mainWorker: string;
  }
  export class VoidLogger {}
  export const BROWSER_RUNTIME: object;
  export function createDuckDB(
    bundles: { mvp: Bundle; eh?: Bundle },
    logger: VoidLogger,
    runtime: object,
  ): Promise<Bindings>;
}
