/**
 * Connections and transactions. There is no pool: calls of several connections run in the database's
 * own order, and each transaction has a session of its own.
 */

import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import type { Database, Transaction } from 'nacredb';
import { OpenTransaction } from './open-transaction.js';

/** What Kysely 0.29 passes with a query that may be cancelled. */
interface Abortable {
  signal?: AbortSignal;
}

/** Kysely's driver for Nacre. */
export class NacreDriver implements Driver {
  readonly #open: () => Promise<Database>;
  #database: Database | null = null;

  constructor(open: () => Promise<Database>) {
    this.#open = open;
  }

  async init(): Promise<void> {
    this.#database = await this.#open();
  }

  acquireConnection(): Promise<DatabaseConnection> {
    return Promise.resolve(new NacreConnection(this.#database!));
  }

  /** Every transaction reads and writes, under snapshot isolation. */
  async beginTransaction(
    connection: DatabaseConnection,
    { accessMode, isolationLevel }: TransactionSettings,
  ): Promise<void> {
    if (accessMode === 'read only' || isolationLevel === 'serializable') {
      const setting = accessMode === 'read only' ? accessMode : isolationLevel;
      throw new Error(`a transaction that is ${setting} is not supported by nacredb`);
    }
    await (connection as NacreConnection).begin();
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await (connection as NacreConnection).ending().commit();
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await (connection as NacreConnection).ending().rollback();
  }

  async savepoint(connection: DatabaseConnection, name: string): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(`savepoint ${quoted(name)}`));
  }

  async rollbackToSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(`rollback to savepoint ${quoted(name)}`));
  }

  async releaseSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(`release savepoint ${quoted(name)}`));
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#database?.close();
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The database, or a transaction of it. */
class NacreConnection implements DatabaseConnection {
  readonly #database: Database;
  #transaction: OpenTransaction | null = null;
  #running: AbortController | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  async begin(): Promise<void> {
    this.#transaction = await OpenTransaction.begin(this.#database);
  }

  /** Takes the transaction that is about to end. */
  ending(): OpenTransaction {
    const transaction = this.#transaction;
    if (transaction === null) {
      throw new Error('the connection has no transaction');
    }
    this.#transaction = null;
    return transaction;
  }

  async executeQuery<R>(
    { sql, parameters }: CompiledQuery,
    options?: Abortable,
  ): Promise<QueryResult<R>> {
    // The caller's signal may mean that the query goes on: `cancelQuery` says when it does not.
    this.#running = options?.signal === undefined ? null : new AbortController();
    const signal = this.#running?.signal;
    const result = await this.#queries.query(sql, parameters, { signal });
    return {
      rows: result.rows as R[],
      numAffectedRows: result.kind === 'write' ? BigInt(result.rowsAffected) : undefined,
    };
  }

  /** Ends the running query, which has changed nothing then. Kysely 0.29 calls it. */
  async cancelQuery(): Promise<void> {
    this.#running?.abort();
  }

  /** Yields batches as the engine computes them, whatever size is asked for. */
  async *streamQuery<R>({ sql, parameters }: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    for await (const { rows } of this.#queries.stream(sql, parameters).batches()) {
      if (rows.length > 0) {
        yield { rows: rows as R[] };
      }
    }
  }

  get #queries(): Database | Transaction {
    return this.#transaction?.queries ?? this.#database;
  }
}
