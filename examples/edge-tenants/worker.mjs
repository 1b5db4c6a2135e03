/**
 * Orders of many tenants. Each tenant is a Durable Object with a database of its own, near its users; the
 * Worker in front only finds the object.
 *
 *   POST /TENANT/orders      {"customer": "ann", "amount": 12.5}   adds one, answers its id
 *   GET  /TENANT/orders/ID                                          reads one
 *   GET  /TENANT/summary                                            customers by what they spent
 *   GET  /TENANT/live        (WebSocket)                            the summary, now and after each change
 */

import { connect, NacreError } from 'nacredb';

const SUMMARY = `
  select customer, count(*)::int as orders, sum(amount)::double as spent
  from "order" group by customer order by spent desc, customer limit 10`;

/** The orders of one tenant. */
export class Tenant {
  #state;
  /** Opened once; all requests share it. */
  #opened;

  constructor(state) {
    this.#state = state;
    this.#opened = state.blockConcurrencyWhile(() => open(state));
  }

  async fetch(request) {
    const opened = this.#opened;
    const db = await opened;
    const [, , what, id] = new URL(request.url).pathname.split('/');
    try {
      if (what === 'orders' && request.method === 'POST') {
        return Response.json(await add(db, await request.json()), { status: 201 });
      }
      if (what === 'orders' && id !== undefined) {
        const { rows } = await db.query('select * from "order" where id = ?', [Number(id)]);
        return rows.length === 0 ? notFound() : Response.json(rows[0]);
      }
      if (what === 'summary') {
        return Response.json((await db.query(SUMMARY)).rows);
      }
      return what === 'live' ? await live(db) : notFound();
    } catch (error) {
      if (error.kind === 'closed' && this.#opened === opened) {
        // Another object of this isolate took the engine with it. The next request finds a new one.
        this.#opened = open(this.#state);
      }
      return failure(error);
    }
  }
}

async function open(state) {
  const db = await connect({ state, types: { bigint: 'number', date: 'string' } });
  await db.exec(`create table if not exists "order" (
    id bigint auto_increment primary key,
    customer text not null,
    amount decimal(12, 2) not null check (amount > 0),
    made timestamp not null default current_timestamp,
    key (customer)
  )`);
  return db;
}

async function add(db, { customer, amount }) {
  const sql = 'insert into "order" (customer, amount) values (?, ?) returning id';
  const { rows } = await db.query(sql, [customer, amount]);
  return rows[0];
}

/** Sends the summary to a socket now, and again whenever an order changes it. */
async function live(db) {
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  const query = await db.live.query(SUMMARY, [], ({ rows }) => server.send(JSON.stringify(rows)));
  server.addEventListener('close', () => void query.unsubscribe());
  return new Response(null, { status: 101, webSocket: client });
}

const notFound = () => Response.json({ error: 'not found' }, { status: 404 });

/** What the client did wrong is its to mend; everything else is not. */
function failure(error) {
  const isTheirs = error instanceof NacreError && ['constraint', 'type'].includes(error.kind);
  return Response.json({ error: String(error.message) }, { status: isTheirs ? 400 : 500 });
}

export default {
  fetch(request, { TENANT }) {
    const [, tenant] = new URL(request.url).pathname.split('/');
    return tenant === '' ? notFound() : TENANT.get(TENANT.idFromName(tenant)).fetch(request);
  },
};
