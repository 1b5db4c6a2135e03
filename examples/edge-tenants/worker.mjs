/**
 * Orders of many tenants. Each tenant is a Durable Object with a database of its own, near its users, which
 * uploads what it commits to a bucket. The Worker in front finds the object, and reads the bucket for
 * reports, so that long queries are no load of the objects.
 *
 *   POST /TENANT/orders      {"customer": "ann", "amount": 12.5}   adds one, answers its id
 *   GET  /TENANT/orders/ID                                          reads one
 *   GET  /TENANT/summary                                            customers by what they spent
 *   GET  /TENANT/live        (WebSocket)                            the summary, now and after each change
 *   GET  /TENANT/report                                             the summary, of about a second ago
 *   GET  /totals?of=TENANT,TENANT                                   orders and what they are worth, by tenant
 *
 * The answer to a new order has its position in the header `x-nacre-position`. A report that is asked for with
 * this header waits until it has that order.
 */

import { connect, NacreError } from 'nacredb';

const SUMMARY = `
  select customer, count(*)::int as orders, sum(amount)::double as spent
  from "order" group by customer order by spent desc, customer limit 10`;

const TOTALS =
  'select count(*)::int as orders, coalesce(sum(amount), 0)::double as worth from "order"';
const POSITION = 'x-nacre-position';
const types = { bigint: 'number', date: 'string' };

/** Where the bucket has the files of an object. Without a bucket, the object keeps them alone. */
const blobsOf = ({ ORDERS }, id) =>
  ORDERS === undefined ? {} : { blobs: { bucket: ORDERS, prefix: id.toString() } };

/** The orders of one tenant. */
export class Tenant {
  #state;
  #env;
  /** Opened once; all requests share it. */
  #opened;

  constructor(state, env) {
    this.#state = state;
    this.#env = env;
    this.#opened = state.blockConcurrencyWhile(() => open(state, env));
  }

  /** The object left memory before it had uploaded everything. */
  async alarm() {
    const opened = this.#opened;
    try {
      await (await opened).alarm();
    } catch (error) {
      this.#openAfter(error, opened);
      // The platform calls again.
      throw error;
    }
  }

  async fetch(request) {
    const opened = this.#opened;
    const [, , what, id] = new URL(request.url).pathname.split('/');
    try {
      const db = await opened;
      if (what === 'orders' && request.method === 'POST') {
        const added = await add(db, await request.json());
        const lag = await db.lag();
        const headers = lag === null ? {} : { [POSITION]: String(lag.position) };
        return Response.json(added, { status: 201, headers });
      }
      if (what === 'orders' && id !== undefined) {
        const { rows } = await db.query('select * from "order" where id = ?', [Number(id)]);
        return rows.length === 0 ? notFound() : Response.json(rows[0]);
      }
      if (what === 'summary') {
        return Response.json((await db.query(SUMMARY)).rows);
      }
      return what === 'live' ? await live(this.#state, db) : notFound();
    } catch (error) {
      this.#openAfter(error, opened);
      return failure(error);
    }
  }

  webSocketMessage() {
    // Clients only listen.
  }

  /** Opens the database again if another object of this isolate took the engine with it: the next call has it. */
  #openAfter(error, opened) {
    if (error.kind === 'closed' && this.#opened === opened) {
      this.#opened = open(this.#state, this.#env);
      // The call that uses it is told.
      this.#opened.catch(() => {});
    }
  }
}

async function open(state, env) {
  const db = await connect({ state, types, ...blobsOf(env, state.id) });
  await db.exec(`create table if not exists "order" (
    id bigint auto_increment primary key,
    customer text not null,
    amount decimal(12, 2) not null check (amount > 0),
    made timestamp not null default current_timestamp,
    key (customer)
  )`);
  // A report of a new tenant finds its database.
  await db.upload();
  // Sockets stay while the object leaves memory.
  await Promise.all(state.getWebSockets().map((socket) => follow(db, socket)));
  return db;
}

async function add(db, { customer, amount }) {
  const sql = 'insert into "order" (customer, amount) values (?, ?) returning id';
  const { rows } = await db.query(sql, [customer, amount]);
  return rows[0];
}

/** Gives the client a socket, which does not keep the object in memory. */
async function live(state, db) {
  const [client, server] = Object.values(new WebSocketPair());
  state.acceptWebSocket(server);
  await follow(db, server);
  return new Response(null, { status: 101, webSocket: client });
}

/** Sends the summary to a socket now, and again whenever an order changes it, until the socket is closed. */
async function follow(db, socket) {
  let query = null;
  query = await db.live.query(SUMMARY, [], ({ rows }) => {
    if (socket.readyState === WebSocket.OPEN) {
      socket.send(JSON.stringify(rows));
    } else {
      void query?.unsubscribe();
    }
  });
}

/** Runs a query on what an object has uploaded, at least up to a position if one is given. */
async function read(env, tenant, sql, position = null) {
  const cache = await caches.open('orders');
  const blobs = blobsOf(env, env.TENANT.idFromName(tenant));
  const db = await connect({ ...blobs, cache, readOnly: true, types });
  try {
    if (position !== null) {
      await db.waitForPosition(Number(position), { timeoutMs: 10_000 });
    }
    return (await db.query(sql)).rows;
  } finally {
    await db.close();
  }
}

async function totals(env, tenants) {
  const all = {};
  for (const tenant of tenants) {
    [all[tenant]] = await read(env, tenant, TOTALS);
  }
  return all;
}

const notFound = () => Response.json({ error: 'not found' }, { status: 404 });

/** What the client did wrong is its to mend; everything else is not. */
function failure(error) {
  const isTheirs = error instanceof NacreError && ['constraint', 'type'].includes(error.kind);
  return Response.json({ error: String(error.message) }, { status: isTheirs ? 400 : 500 });
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const [, tenant, what] = pathname.split('/');
    try {
      if (tenant === 'totals') {
        return Response.json(await totals(env, searchParams.get('of').split(',')));
      }
      if (what === 'report') {
        const position = request.headers.get(POSITION);
        return Response.json(await read(env, tenant, SUMMARY, position));
      }
    } catch (error) {
      // A tenant that has uploaded nothing has no database there.
      return error.kind === 'not_found' ? notFound() : failure(error);
    }
    const { TENANT } = env;
    return tenant === '' ? notFound() : TENANT.get(TENANT.idFromName(tenant)).fetch(request);
  },
};
