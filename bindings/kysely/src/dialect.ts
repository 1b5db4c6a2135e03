/** The dialect: the four parts that Kysely asks for, over one database. */

import type {
  DatabaseIntrospector,
  Dialect,
  DialectAdapter,
  Driver,
  Kysely,
  QueryCompiler,
} from 'kysely';
import type { Database } from 'nacredb';
import { NacreAdapter } from './adapter.js';
import { NacreQueryCompiler } from './compiler.js';
import { NacreDriver } from './driver.js';
import { NacreIntrospector } from './introspector.js';

/** What a `NacreDialect` is made of. */
export interface NacreDialectConfig {
  /**
   * The database, or a function that opens it when Kysely needs it first. `kysely.destroy()` closes
   * it.
   */
  database: Database | (() => Promise<Database>);
}

/** Kysely's dialect for Nacre. */
export class NacreDialect implements Dialect {
  readonly #database: () => Promise<Database>;

  constructor({ database }: NacreDialectConfig) {
    let opened: Promise<Database> | undefined;
    this.#database = () =>
      (opened ??= typeof database === 'function' ? database() : Promise.resolve(database));
  }

  createDriver(): Driver {
    return new NacreDriver(this.#database);
  }

  createQueryCompiler(): QueryCompiler {
    return new NacreQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return new NacreAdapter(this.#database);
  }

  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new NacreIntrospector(db);
  }
}
