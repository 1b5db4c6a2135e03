/** The Worker of the tests: a Durable Object for each tenant, and databases in memory without one. */

import { connect } from './edge.js';

/** The memory of the engine, which all objects of an isolate share. */
let memory = null;
WebAssembly.Instance = class extends WebAssembly.Instance {
  constructor(...args) {
    super(...args);
    memory = this.exports.memory ?? memory;
  }
};

const json = (value) => (typeof value === 'bigint' ? Number(value) : value);
const answer = (value, status = 200) =>
  new Response(
    JSON.stringify(value, (_, each) => json(each)),
    { status },
  );
const failure = ({ name, kind, sqlstate, message }) =>
  answer({ name, kind, sqlstate, message }, 500);

/** How often objects of this isolate were made, by their ids. */
const made = new Map();

/** Runs the statements of a request: the rows of each. */
async function run(db, request) {
  const results = [];
  for (const [sql, parameters] of await request.json()) {
    results.push((await db.query(sql, parameters ?? [])).rows);
  }
  return results;
}

/**
 * The state of an object that ends after some calls of its storage, as an isolate may at any moment, and whose
 * storage may have no room.
 */
class Mortal {
  callsLeft = Infinity;
  /** Bytes that may still be written. */
  room = Infinity;
  storage;

  constructor(state, alarmMs) {
    const { sql } = state.storage;
    const exec = (...args) => {
      this.room -= args.reduce((sum, { byteLength = 0 }) => sum + byteLength, 0);
      if (this.room < 0) {
        throw new Error('database or disk is full: SQLITE_FULL');
      }
      if (--this.callsLeft <= 0) {
        state.abort('the isolate ends here');
        throw new Error('the isolate has ended');
      }
      return sql.exec(...args);
    };
    const setAlarm = () => state.storage.setAlarm(Date.now() + alarmMs);
    this.storage = { sql: { exec }, setAlarm };
  }
}

/** A tenant with a database in the object's storage. */
export class Tenant {
  #state;
  #options;
  #leave;
  #opened;
  #id;
  /** Sends a request to this object. */
  #again;
  #accept;
  #reached = false;

  constructor(state, env, options = async () => ({}), alarmMs = 0) {
    this.#state = new Mortal(state, alarmMs);
    this.#options = options;
    this.#id = String(state.id);
    made.set(this.#id, (made.get(this.#id) ?? 0) + 1);
    this.#again = (request) => env.TENANT.get(state.id).fetch(request);
    this.#accept = (socket) => state.acceptWebSocket(socket);
    this.#leave = () => setTimeout(() => state.abort('it leaves memory'), 50);
    this.#open();
    // Sockets outlive an object that leaves memory.
    state.getWebSockets().forEach((socket) => void this.#follow(socket));
  }

  #open() {
    const opened = async () => connect({ state: this.#state, ...(await this.#options()) });
    this.#opened = opened();
    this.#opened.catch(() => {});
  }

  async ring() {
    await (await this.#opened).alarm();
  }

  async fetch(request) {
    const { pathname } = new URL(request.url);
    this.#state.callsLeft = Number(request.headers.get('abort-after') ?? this.#state.callsLeft);
    this.#state.room = Number(request.headers.get('room') ?? this.#state.room);
    const opened = this.#opened;
    try {
      const db = await opened;
      switch (pathname) {
        case '/sql':
          return answer(await run(db, request));
        case '/together':
          return answer(
            await db.transaction(async (tx) => {
              const first = request.headers.get('first');
              if (first !== null) {
                await tx.query(first);
                this.#reached = true;
              }
              const rows = await run(tx, request);
              if (request.headers.get('fail') !== null) {
                throw new Error('the application fails');
              }
              return rows;
            }),
          );
        case '/reached':
          return answer(this.#reached);
        case '/again-inside':
          return answer(
            await db.transaction(async (tx) => {
              await tx.query(request.headers.get('first'));
              const url = new URL('/sql', request.url);
              const inside = await this.#again(new Request(url, request));
              return [await inside.json(), (await tx.query('select * from note order by id')).rows];
            }),
          );
        case '/twice':
          await connect({ state: this.#state });
          return answer('opened twice');
        case '/twice-by-parts': {
          const { sql } = this.#state.storage;
          await connect({ state: { storage: { sql, setAlarm: async () => {} } } });
          return answer('opened twice');
        }
        case '/again':
          await db.close();
          this.#open();
          return answer(await run(await this.#opened, request));
        case '/leave':
          this.#leave();
          return answer('it leaves memory');
        case '/upload':
          await db.upload();
          return answer(await db.lag());
        case '/lag':
          return answer(await db.lag());
        case '/memory':
          return answer(memory.buffer.byteLength);
        case '/storage':
          return answer(await db.storage());
        case '/live':
          return await this.#live();
        case '/made':
          return answer(made.get(this.#id));
        default:
          return answer('not found', 404);
      }
    } catch (error) {
      if (error.kind === 'closed' && this.#opened === opened) {
        // The engine is gone, of which all objects of an isolate have one. The next request opens again.
        this.#open();
      }
      return failure(error);
    }
  }

  /** Sends the number of notes to a socket, again after each change. */
  async #live() {
    const [client, server] = Object.values(new WebSocketPair());
    this.#accept(server);
    await this.#follow(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  async #follow(socket) {
    const db = await this.#opened;
    let query = null;
    query = await db.live.query('select count(*) as n from note', [], ({ rows }) => {
      if (socket.readyState === WebSocket.OPEN) {
        socket.send(String(rows[0].n));
      } else {
        void query?.unsubscribe();
      }
    });
  }

  webSocketMessage() {
    // Clients only listen.
  }
}

/** Tenants with a blob store below their storage, whose prefix and server their first request names. */
class Stored extends Tenant {
  #named;

  constructor(state, env, options, alarmMs) {
    let named;
    const name = new Promise((resolve) => (named = resolve));
    const where = state.storage.get('where').then((known) => known ?? name);
    const blobs = async () => {
      const { prefix, endpoint } = await where;
      const credentials = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
      return endpoint === null
        ? { bucket: env.BUCKET, prefix }
        : { url: `s3://bucket/${prefix}`, endpoint, credentials };
    };
    super(
      state,
      env,
      async () => ({ blobs: await blobs(), blobPatience: 2_000, ...options }),
      alarmMs,
    );
    this.#named = async (tenant, endpoint) => {
      const [, prefix] = tenant.split('.');
      await state.storage.put('where', { prefix, endpoint });
      named({ prefix, endpoint });
    };
  }

  async fetch(request) {
    const tenant = new URL(request.url).searchParams.get('tenant');
    await this.#named(tenant, request.headers.get('endpoint'));
    return super.fetch(request);
  }
}

/** Keeps little of its files. */
export class Small extends Stored {
  constructor(state, env) {
    super(state, env, { diskLimit: 300_000 }, 60_000);
  }

  async alarm() {
    await this.ring();
  }
}

/** Uploads nothing unless its alarm rings. */
export class Waking extends Stored {
  constructor(state, env) {
    super(state, env, { blobLag: 3_600_000 }, 1_500);
  }

  async alarm() {
    await this.ring();
  }
}

/** Never answers an alarm. */
export class Deaf extends Stored {
  constructor(state, env) {
    super(state, env, {}, 1_500);
  }
}

const firsts = new Map();

/** A bucket that answers reads of the manifest as it was when it was asked first. */
function forgetful(bucket, prefix) {
  const get = async (key, options) => {
    if (key !== `${prefix}/manifest`) {
      return bucket.get(key, options);
    }
    const found = await bucket.get(key, options);
    const bytes = await found.arrayBuffer();
    const { etag, size, uploaded } = found;
    const first = firsts.get(key) ?? { key, etag, size, uploaded, arrayBuffer: async () => bytes };
    firsts.set(key, first);
    return first;
  };
  return new Proxy(bucket, {
    get: (of, name) => (name === 'get' ? get : (...args) => of[name](...args)),
  });
}

/** A bucket that is only read, and counts the ranges. */
function counted(bucket, seen) {
  const get = (key, options) => {
    seen.ranges += options?.range === undefined ? 0 : 1;
    return bucket.get(key, options);
  };
  return {
    get,
    put: () => Promise.reject(new Error('it is only read')),
    head: (key) => bucket.head(key),
    list: (options) => bucket.list(options),
  };
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const tenant = url.searchParams.get('tenant');
    if (tenant !== null) {
      const [kind] = tenant.split('.');
      const of = env[kind.toUpperCase()] ?? env.TENANT;
      return of.get(of.idFromName(tenant)).fetch(request);
    }
    try {
      const { position, cached, isForgetful, ...options } = JSON.parse(
        request.headers.get('options') ?? '{}',
      );
      const seen = { ranges: 0 };
      if (url.pathname === '/bucket') {
        const { key, ...blobs } = options.blobs;
        const encryptionKey = key && Uint8Array.from(key);
        const bucket = isForgetful ? forgetful(env.BUCKET, blobs.prefix) : env.BUCKET;
        options.blobs = { bucket, encryptionKey, ...blobs };
      }
      if (cached !== undefined) {
        options.blobs.bucket = counted(env.BUCKET, seen);
        options.cache = (cached && (await caches.open('tests'))) ?? undefined;
      }
      const db = await connect(options);
      try {
        if (position !== undefined) {
          await db.waitForPosition(position);
        }
        const results = await run(db, request);
        return answer(cached === undefined ? results : { results, ...seen });
      } finally {
        await db.close();
      }
    } catch (error) {
      return failure(error);
    }
  },
};
