/** Runs Drizzle's queries on a database, and in transactions of it. */

import { entityKind, fillPlaceholders, sql, type Logger, type Query, type SQL } from 'drizzle-orm';
import { NoopCache, type Cache } from 'drizzle-orm/cache/core';
import type { WithCacheConfig } from 'drizzle-orm/cache/core/types';
import { NoopLogger } from 'drizzle-orm/logger';
import {
  PgPreparedQuery,
  PgSession,
  PgTransaction,
  type PgDialect,
  type PgQueryResultHKT,
  type PgTransactionConfig,
  type PreparedQueryConfig,
  type SelectedFieldsOrdered,
} from 'drizzle-orm/pg-core';
import type { RelationalSchemaConfig, TablesRelationalConfig } from 'drizzle-orm/relations';
import { mapResultRow } from './drizzle-internals.js';
import type { Database, QueryResult, Transaction } from 'nacredb';
import { decodeLeaf } from './relational.js';
import { JsonReader, toParameters } from './values.js';

/** What a statement without rows to map answers: the result of nacredb. */
export interface NacreQueryResultHKT extends PgQueryResultHKT {
  type: QueryResult<this['row']>;
}

/** The tables of a schema, as Drizzle's relational queries need them. */
export type Schema<T extends TablesRelationalConfig = TablesRelationalConfig> =
  RelationalSchemaConfig<T>;

/** What all sessions of one database share. */
export interface SessionOptions {
  logger?: Logger;
  cache?: Cache;
}

type QueryMetadata = {
  type: 'select' | 'update' | 'delete' | 'insert';
  tables: string[];
};
type ResultMapper<T> = (
  rows: unknown[][],
  mapColumnValue?: (value: unknown) => unknown,
) => T | Promise<T>;

/** Drizzle's session: the database itself, or one transaction. */
export class NacreSession<
  F extends Record<string, unknown> = Record<string, unknown>,
  T extends TablesRelationalConfig = TablesRelationalConfig,
> extends PgSession<NacreQueryResultHKT, F, T> {
  static override readonly [entityKind]: string = 'NacreSession';
  readonly #client: Database | Transaction;
  readonly #schema: Schema<T> | undefined;
  readonly #options: SessionOptions;
  readonly #json: JsonReader;

  constructor(
    client: Database | Transaction,
    dialect: PgDialect,
    schema: Schema<T> | undefined,
    options: SessionOptions = {},
    json = new JsonReader(client),
  ) {
    super(dialect);
    this.#client = client;
    this.#schema = schema;
    this.#options = options;
    this.#json = json;
  }

  prepareQuery<C extends PreparedQueryConfig = PreparedQueryConfig>(
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    _name: string | undefined,
    _isResponseInArrayMode: boolean,
    mapper?: ResultMapper<C['execute']>,
    metadata?: QueryMetadata,
    cacheConfig?: WithCacheConfig,
  ): PgPreparedQuery<C> {
    const { logger = new NoopLogger(), cache = new NoopCache() } = this.#options;
    const caching = { cache, metadata, cacheConfig };
    const context = { client: this.#client, json: this.#json, logger };
    return new NacrePreparedQuery<C>(context, query, fields, mapper, caching);
  }

  /** Every transaction reads and writes, under snapshot isolation. */
  override async transaction<R>(
    work: (tx: NacreTransaction<F, T>) => Promise<R>,
    { isolationLevel, accessMode }: PgTransactionConfig = {},
  ): Promise<R> {
    if (isolationLevel === 'serializable' || accessMode === 'read only') {
      const setting = accessMode === 'read only' ? accessMode : isolationLevel;
      throw new Error(`a transaction that is ${setting} is not supported by nacredb`);
    }
    return (this.#client as Database).transaction((client) => {
      const session = new NacreSession<F, T>(
        client,
        this.dialect,
        this.#schema,
        this.#options,
        this.#json,
      );
      return work(new NacreTransaction<F, T>(this.dialect, session, this.#schema));
    });
  }

  override async count(query: SQL): Promise<number> {
    const result = await this.execute<QueryResult<{ count: bigint }>>(query);
    return Number(result.rows[0]?.count);
  }
}

/** A transaction; one inside another is a savepoint. */
export class NacreTransaction<
  F extends Record<string, unknown> = Record<string, unknown>,
  T extends TablesRelationalConfig = TablesRelationalConfig,
> extends PgTransaction<NacreQueryResultHKT, F, T> {
  static override readonly [entityKind]: string = 'NacreTransaction';

  readonly #parts: [PgDialect, NacreSession<F, T>];

  constructor(
    dialect: PgDialect,
    session: NacreSession<F, T>,
    schema: Schema<T> | undefined,
    nestedIndex = 0,
  ) {
    super(dialect, session, schema, nestedIndex);
    this.#parts = [dialect, session];
  }

  override async transaction<R>(work: (tx: NacreTransaction<F, T>) => Promise<R>): Promise<R> {
    const depth = this.nestedIndex + 1;
    const name = sql.identifier(`drizzle_${depth}`);
    const tx = new NacreTransaction<F, T>(...this.#parts, this.schema, depth);
    await tx.execute(sql`savepoint ${name}`);
    try {
      const result = await work(tx);
      await tx.execute(sql`release savepoint ${name}`);
      return result;
    } catch (error) {
      await tx.execute(sql`rollback to savepoint ${name}`);
      throw error;
    }
  }
}

interface Context {
  client: Database | Transaction;
  json: JsonReader;
  logger: Logger;
}

interface Caching {
  cache: Cache;
  metadata: QueryMetadata | undefined;
  cacheConfig: WithCacheConfig | undefined;
}

/** A query with placeholders. nacredb caches the plan by the query's text. */
class NacrePreparedQuery<C extends PreparedQueryConfig> extends PgPreparedQuery<C> {
  static override readonly [entityKind]: string = 'NacrePreparedQuery';
  /** Set by Drizzle: which tables of a join have rows whatever the other side has. */
  declare joinsNotNullableMap: Record<string, boolean> | undefined;
  declare queryWithCache: <R>(
    text: string,
    parameters: unknown[],
    run: () => Promise<R>,
  ) => Promise<R>;
  readonly #context: Context;
  readonly #fields: SelectedFieldsOrdered | undefined;
  readonly #mapper: ResultMapper<C['execute']> | undefined;

  constructor(
    context: Context,
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    mapper: ResultMapper<C['execute']> | undefined,
    { cache, metadata, cacheConfig }: Caching,
  ) {
    super(query, cache, metadata, cacheConfig);
    this.#context = context;
    this.#fields = fields;
    this.#mapper = mapper;
  }

  async execute(placeholders: Record<string, unknown> = {}): Promise<C['execute']> {
    const fields = this.#fields;
    if (fields === undefined && this.#mapper === undefined) {
      return this.#run(placeholders, async (result) => result);
    }
    const rows = await this.#run(placeholders, (result) =>
      this.#context.json.valuesOf(result, this.#mapper !== undefined),
    );
    return this.#mapper === undefined
      ? rows.map((row) => mapResultRow(fields!, row, this.joinsNotNullableMap))
      : this.#mapper(rows, decodeLeaf);
  }

  /** The rows as they come from the database. */
  async all(placeholders: Record<string, unknown> = {}): Promise<C['all']> {
    return this.#run(placeholders, async (result) => result.rows);
  }

  #run<R>(
    placeholders: Record<string, unknown>,
    read: (result: QueryResult) => Promise<R>,
  ): Promise<R> {
    const { client, logger } = this.#context;
    const query = this.getQuery();
    const parameters = fillPlaceholders(query.params, placeholders);
    logger.logQuery(query.sql, parameters);
    return this.queryWithCache(query.sql, parameters, async () =>
      read(await client.query(query.sql, toParameters(query, parameters))),
    );
  }
}
