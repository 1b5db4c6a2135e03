/**
 * A client for Knex: the SQL of its client for PostgreSQL, run by a database of `nacredb`. Queries
 * outside transactions share the database's session; each transaction has one of its own.
 */

import PostgresClient from 'knex/lib/dialects/postgres/index.js';
import PostgresColumns from 'knex/lib/dialects/postgres/schema/pg-columncompiler.js';

/** The client for a database: `knex({ client: nacreClient(db), connection: {} })`. */
export function nacreClient(database) {
  return class NacreClient extends PostgresClient {
    _driver() {
      return database;
    }

    async acquireRawConnection() {
      return new Connection(database);
    }

    async destroyRawConnection(connection) {
      await connection.end('rollback');
    }

    async _query(connection, query) {
      query.response = await connection.query(query.sql, query.bindings ?? []);
      return query;
    }

    _stream() {
      throw new Error('this client has no streams: use db.stream of nacredb');
    }

    columnCompiler(...args) {
      return new Columns(this, ...args);
    }
  };
}

/** Times have no time zone. */
class Columns extends PostgresColumns {
  timestamp() {
    return 'timestamp';
  }

  datetime() {
    return 'timestamp';
  }
}

/** What Knex takes for a connection. It begins and ends transactions by statements. */
class Connection {
  #database;
  /** The open transaction, how to end it, and when it has ended. */
  #open = null;

  constructor(database) {
    this.#database = database;
  }

  async query(text, parameters) {
    const [first] = text
      .trim()
      .toLowerCase()
      .split(/[\s;]+/);
    if (first === 'begin') {
      await this.#begin();
      return {};
    }
    if (first === 'commit' || /^\s*rollback\s*;?\s*$/i.test(text)) {
      await this.end(first);
      return {};
    }
    const session = this.#open?.transaction ?? this.#database;
    const { rows, rowsAffected, kind } = await session.query(text, parameters);
    const command = kind === 'query' ? 'SELECT' : first.toUpperCase();
    return { command, rows, rowCount: rowsAffected };
  }

  /** `db.transaction` runs a function in a transaction; this one waits for the end. */
  async #begin() {
    let start;
    let end;
    const started = new Promise((resolve) => (start = resolve));
    const until = new Promise((resolve) => (end = resolve));
    const ended = this.#database.transaction((transaction) => {
      start(transaction);
      return until;
    });
    // A closed database fails without calling the function.
    const transaction = await Promise.race([started, ended.then(() => started)]);
    this.#open = { transaction, end, ended };
  }

  async end(how) {
    const open = this.#open;
    this.#open = null;
    if (open === null) {
      return;
    }
    if (how === 'rollback') {
      await open.transaction.rollback();
    }
    open.end();
    await open.ended;
  }
}
