/** A database whose engine runs in the caller's thread: calls without messages, and without waiting. */

import type { Connection } from '../../../worker/shared/connection.js';
import { MAIN_SESSION } from '../../../worker/shared/protocol.js';
import type { WireParameters, WirePrepared } from '../../../worker/shared/wire.js';
import type { Client } from './client.js';
import { Database } from './database.js';
import { LocalTransport } from './local-transport.js';
import type { CallOptions } from './options.js';
import { copyParameters } from './parameters.js';
import { QueryResult } from './result.js';
import type { AnySchema, Chosen } from './schema.js';
import { Shape } from './shape.js';
import { mustBeText } from './sql.js';
import { nextStatement, PreparedStatement } from './statement.js';
import type { Parameters, Row, TypeOptions } from './types.js';

/**
 * A database made by `connectInThread`. It has the functions of every database; its prepared
 * statements can also run synchronously.
 */
export class ThreadDatabase<S extends object = AnySchema> extends Database<S> {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, types: TypeOptions) {
    super({ transport: new LocalTransport(connection), types });
    this.#connection = connection;
  }

  /**
   * Parses and binds a statement once, to run it many times, also synchronously.
   *
   * @example
   * ```ts
   * const db = await connectInThread('memory://');
   * const statement = await db.prepare<{ n: number }>('select ? + 1 as n');
   * console.log(statement.getSync([1])); // { n: 2n }
   * await db.close();
   * ```
   */
  override async prepare<R = never, Text extends string = string>(
    sql: Text,
    options?: CallOptions,
  ): Promise<ThreadStatement<Chosen<R, S, Text>>> {
    mustBeText(sql);
    this.check(options);
    const number = nextStatement();
    const wire = await this.client.transport.call('prepare', MAIN_SESSION, number, sql);
    return this.#statement(number, wire);
  }

  /**
   * Like `prepare`, without waiting. Fails with `unavailable` while another call of `db` runs.
   *
   * @example
   * ```ts
   * const db = await connectInThread('memory://');
   * console.log(db.prepareSync('select 1 as one').allSync()); // [ { one: 1 } ]
   * await db.close();
   * ```
   */
  prepareSync<R = never, Text extends string = string>(
    sql: Text,
  ): ThreadStatement<Chosen<R, S, Text>> {
    mustBeText(sql);
    this.mustBeOpen();
    const number = nextStatement();
    return this.#statement(
      number,
      this.#connection.callNow('prepare', [MAIN_SESSION, number, sql]),
    );
  }

  #statement<R>(number: number, wire: WirePrepared): ThreadStatement<R> {
    return new ThreadStatement<R>(this.client, this.#connection, number, wire);
  }
}

/** A prepared statement of a `ThreadDatabase`. */
export class ThreadStatement<R = Row> extends PreparedStatement<R> {
  readonly #connection: Connection;
  readonly #number: number;
  readonly #shape: Shape;

  /** @internal */
  constructor(client: Client, connection: Connection, number: number, wire: WirePrepared) {
    super(client, MAIN_SESSION, number, wire);
    this.#connection = connection;
    this.#number = number;
    this.#shape = Shape.of(wire.fields, client.types);
  }

  /**
   * Runs the statement without giving way, and answers its whole result. Fails with `unavailable`,
   * and changes nothing, if it must wait: for another call of `db` that runs, for a row that a
   * transaction has locked, or for files. `unsupported` with `durability: 'blob'`, which waits for uploads.
   *
   * @example
   * ```ts
   * const db = await connectInThread('memory://');
   * await db.exec('create table visit (id bigint primary key, page text)');
   * const insert = await db.prepare('insert into visit values (?, ?)');
   * console.log(insert.runSync([1, 'home']).rowsAffected); // 1
   * await db.close();
   * ```
   */
  runSync(parameters?: Parameters): QueryResult<R> {
    this.mustBeOpen();
    return this.#run(copyParameters(parameters));
  }

  /**
   * Like `runSync`, and answers the first row, or `undefined` if there is none.
   *
   * @example
   * ```ts
   * const db = await connectInThread('memory://');
   * const count = await db.prepare<{ n: bigint }>('select count(*) as n from (values (1), (2)) v');
   * console.log(count.getSync()?.n); // 2n
   * await db.close();
   * ```
   */
  getSync(parameters?: Parameters): R | undefined {
    this.mustBeOpen();
    const copy = copyParameters(parameters);
    // A row that a key leads to needs no whole result.
    const values = this.#connection.getNow(MAIN_SESSION, this.#number, copy);
    if (values !== null) {
      return values && this.#shape.row<R>((column) => values[column]);
    }
    const result = this.#run(copy);
    return result.rowCount === 0 ? undefined : result.row(0);
  }

  /**
   * Like `runSync`, and answers every row.
   *
   * @example
   * ```ts
   * const db = await connectInThread('memory://');
   * const statement = await db.prepare('select ? as first');
   * console.log(statement.allSync(['a'])); // [ { first: 'a' } ]
   * await db.close();
   * ```
   */
  allSync(parameters?: Parameters): R[] {
    return this.runSync(parameters).rows;
  }

  #run(parameters: WireParameters): QueryResult<R> {
    const wire = this.#connection.callNow('run', [MAIN_SESSION, this.#number, parameters]);
    return new QueryResult<R>(wire, this.#shape.types, this.#shape.fields);
  }
}
