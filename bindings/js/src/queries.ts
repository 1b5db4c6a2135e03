/** What a database and a transaction have in common: running SQL in a session. */

import type { WireParameters } from '../../../worker/shared/wire.js';
import { mustNotBeAborted } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions, StatementOptions } from './options.js';
import { copyParameters } from './parameters.js';
import { QueryResult } from './result.js';
import type { AnySchema, Chosen } from './schema.js';
import { isSqlQuery, mustBeText, type SqlQuery } from './sql.js';
import { nextStatement, PreparedStatement } from './statement.js';
import { ResultStream } from './stream.js';
import { needsTicket, withTicket } from './ticket.js';
import type { Parameters, Row } from './types.js';

/** Runs SQL in one session. */
export abstract class Queries<S extends object = AnySchema> {
  /** @internal */
  protected readonly client: Client;
  /** @internal */
  protected readonly session: number;

  /** @internal */
  constructor(client: Client, session: number) {
    this.client = client;
    this.session = session;
  }

  /** Throws unless calls may be made. */
  protected abstract mustBeOpen(): void;

  /**
   * Runs a statement made with the `sql` tag, or SQL text with its parameters. Of several
   * statements, answers the result of the last.
   *
   * @example
   * ```ts
   * const page = 'home';
   * const query = sql`select id, ms from visit where page = ${page} order by id`;
   * const { rows } = await db.query(query);
   * console.log(rows); // [ { id: 1n, ms: 120 }, { id: 3n, ms: 95 } ]
   *
   * const { rowsAffected } = await db.query('update visit set ms = ms + ? where id = ?', [5, 2]);
   * console.log(rowsAffected); // 1
   *
   * const named = await db.query('select ms from visit where id = :id', { id: 2 });
   * console.log(named.rows); // [ { ms: 85 } ]
   * ```
   */
  query<R = Row>(sql: SqlQuery, options?: StatementOptions): Promise<QueryResult<R>>;
  query<R = never, Text extends string = string>(
    sql: Text,
    parameters?: Parameters,
    options?: StatementOptions,
  ): Promise<QueryResult<Chosen<R, S, Text>>>;
  async query<R>(
    sql: string | SqlQuery,
    second?: unknown,
    third?: StatementOptions,
  ): Promise<QueryResult<R>> {
    const { text, parameters, options } = split(sql, second, third);
    this.check(options);
    const { transport, types } = this.client;
    const wire = await (needsTicket(options)
      ? withTicket(transport, options, (ticket) =>
          transport.call('execute', this.session, text, parameters, ticket),
        )
      : transport.call('execute', this.session, text, parameters));
    return new QueryResult<R>(wire, types);
  }

  /**
   * Runs one or more statements without parameters, and answers the result of the last.
   *
   * @example
   * ```ts
   * await db.exec(`
   *   create table page (name text primary key, title text);
   *   insert into page values ('home', 'Welcome'), ('docs', 'Documentation');
   * `);
   * ```
   */
  exec(sql: string, options?: StatementOptions): Promise<QueryResult> {
    return this.query(sql, undefined, options);
  }

  /**
   * Runs a query and answers its result as an Arrow IPC stream, which `tableFromIPC` of the package
   * `apache-arrow` and other Arrow libraries read.
   *
   * @example
   * ```ts
   * import { tableFromIPC } from 'apache-arrow';
   *
   * const table = tableFromIPC(await db.queryArrow('select page, ms from visit'));
   * console.log(table.numRows, table.getChild('ms')?.get(1)); // 3 80
   * ```
   */
  queryArrow(sql: SqlQuery, options?: StatementOptions): Promise<Uint8Array>;
  queryArrow(sql: string, parameters?: Parameters, options?: StatementOptions): Promise<Uint8Array>;
  async queryArrow(
    sql: string | SqlQuery,
    second?: unknown,
    third?: StatementOptions,
  ): Promise<Uint8Array> {
    const { text, parameters, options } = split(sql, second, third);
    this.check(options);
    const { transport } = this.client;
    return needsTicket(options)
      ? withTicket(transport, options, (ticket) =>
          transport.call('arrow', this.session, text, parameters, ticket),
        )
      : transport.call('arrow', this.session, text, parameters);
  }

  /**
   * Runs a query whose rows are read while it runs: with `rows()`, in `batches()`, or as Arrow. The
   * query starts when the first rows are asked for. Aborting `signal` ends it.
   *
   * @example
   * ```ts
   * let total = 0;
   * for await (const { ms } of db.stream<{ ms: number }>('select ms from visit').rows()) {
   *   total += ms;
   * }
   * console.log(total); // 295
   * ```
   */
  stream<R = Row>(sql: SqlQuery, options?: CallOptions): ResultStream<R>;
  stream<R = never, Text extends string = string>(
    sql: Text,
    parameters?: Parameters,
    options?: CallOptions,
  ): ResultStream<Chosen<R, S, Text>>;
  stream<R>(sql: string | SqlQuery, second?: unknown, third?: CallOptions): ResultStream<R> {
    const { text, parameters, options } = split(sql, second, third);
    return new ResultStream<R>(this.client, options, async (stream, form) => {
      this.check(options);
      return this.client.transport.call('stream', this.session, stream, form, text, parameters);
    });
  }

  /**
   * Parses and binds a statement once, to run it many times. Close it when it is no longer needed.
   *
   * @example
   * ```ts
   * const insert = await db.prepare('insert into visit values (?, ?, ?)');
   * await insert.run([4, 'docs', 64]);
   * await insert.run([5, 'home', 71]);
   * await insert.close();
   * ```
   */
  async prepare<R = never, Text extends string = string>(
    sql: Text,
    options?: CallOptions,
  ): Promise<PreparedStatement<Chosen<R, S, Text>>> {
    mustBeText(sql);
    this.check(options);
    const statement = nextStatement();
    const wire = await this.client.transport.call('prepare', this.session, statement, sql);
    return new PreparedStatement(this.client, this.session, statement, wire);
  }

  /** @internal Throws unless a call may be made with these options. */
  protected check(options: CallOptions | undefined): void {
    this.mustBeOpen();
    mustNotBeAborted(options);
  }
}

interface Request {
  text: string;
  parameters: WireParameters;
  options: StatementOptions | undefined;
}

/** Tells the two ways of calling apart: with a tagged query, or with text and parameters. */
function split(
  sql: string | SqlQuery,
  second: unknown,
  third: StatementOptions | undefined,
): Request {
  if (isSqlQuery(sql)) {
    mustBeText(sql.text);
    const parameters = copyParameters(sql.parameters as Parameters);
    return { text: sql.text, parameters, options: second as StatementOptions | undefined };
  }
  mustBeText(sql);
  return {
    text: sql,
    parameters: copyParameters(second as Parameters | undefined),
    options: third,
  };
}
