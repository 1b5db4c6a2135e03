/** The client's side: a database of notes, and the exchange of changes with a server. */

const SCHEMA = `
  create table if not exists note (
    id text primary key, body text not null, is_deleted boolean not null,
    at bigint not null, client text not null
  );
  create table if not exists sync_state (name text primary key, value bigint not null);`;

/** Notes that work without a server, and are kept in step with it while `run` runs. */
export class Notes {
  #db;
  #url;
  #client;
  /** The time of the newest version that this client knows, so that a later one is newer. */
  #latest = 0n;
  /** Settles with the last transaction. */
  #turn = Promise.resolve();

  constructor(db, url, client) {
    this.#db = db;
    this.#url = url;
    this.#client = client;
  }

  /** Opens the notes of a client, whose name no other client has. */
  static async open(db, url, client) {
    await db.exec(SCHEMA);
    const notes = new Notes(db, url, client);
    const { rows } = await db.query('select max(at) as latest from note');
    notes.#latest = rows[0].latest ?? 0n;
    return notes;
  }

  async list() {
    const sql = 'select id, body from note where not is_deleted order by id';
    return (await this.#db.query(sql)).rows;
  }

  async write(id, body) {
    await this.#put(id, body, false);
  }

  async delete(id) {
    await this.#put(id, '', true);
  }

  #put(id, body, isDeleted) {
    return this.#change(async (tx) => {
      const own = await ownVersion(tx, id);
      // Another tab may have taken a version that this one does not know.
      this.#know(own?.at ?? 0n);
      await put(tx, { id, body, is_deleted: isDeleted, at: this.#now(), client: this.#client });
    });
  }

  /**
   * Runs a transaction, after those before it, so that times are in the order of commits. One that
   * meets a commit of another tab is run again, and sees what that has written.
   */
  #change(work) {
    const change = async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#db.transaction(work);
        } catch (error) {
          if (!error.retryable || error.mayHaveRun || attempt === 5) {
            throw error;
          }
        }
      }
    };
    this.#turn = this.#turn.catch(() => {}).then(change);
    return this.#turn;
  }

  #know(at) {
    this.#latest = at > this.#latest ? at : this.#latest;
  }

  /** A time after all that are known, also where clocks differ. */
  #now() {
    const clock = BigInt(Date.now());
    this.#latest = clock > this.#latest ? clock : this.#latest + 1n;
    return this.#latest;
  }

  /**
   * Sends changes as they are committed, and asks for those of others now and then, until the signal
   * aborts. While the server is away, notes work on.
   */
  async run({ signal, everyMs = 1_000 }) {
    await Promise.all([
      this.#again(signal, everyMs, () => this.#push(signal)),
      this.#again(signal, everyMs, () => this.pull()),
    ]);
  }

  async #again(signal, everyMs, work) {
    while (!signal.aborted) {
      // The server is away, or the tab that had the database open has gone: from the start again.
      await work().catch(() => {});
      await pause(everyMs, signal);
    }
  }

  async #push(signal) {
    // Begun first, so that nothing is written between what is read and what is followed.
    const changes = await this.#db.live.changes('note', { signal });
    try {
      const sql = 'select * from note where client = ? and at > ?';
      const { rows } = await this.#db.query(sql, [this.#client, await this.#state('pushed')]);
      await this.#send([...rows]);
      for await (const { inserted, updated } of changes) {
        await this.#send([...inserted, ...updated].filter(({ client }) => client === this.#client));
      }
    } finally {
      await changes.unsubscribe();
    }
  }

  async #send(rows) {
    if (rows.length === 0) {
      return;
    }
    const body = JSON.stringify(rows.map((row) => ({ ...row, at: String(row.at) })));
    const response = await fetch(new URL('push', this.#url), { method: 'POST', body });
    if (!response.ok) {
      throw new Error(`the server answered ${response.status}`);
    }
    await this.#setState(
      'pushed',
      rows.map(({ at }) => at).reduce((a, b) => (a > b ? a : b)),
    );
  }

  /**
   * Takes the versions of others, unless the own ones are later. Reading a version and replacing it is
   * one transaction: a note that is written in between would be lost.
   */
  async pull() {
    const since = await this.#state('pulled');
    const response = await fetch(new URL(`pull?since=${since}`, this.#url));
    const { rows, last } = await response.json();
    await this.#change(async (tx) => {
      for (const row of rows.map((row) => ({ ...row, at: BigInt(row.at) }))) {
        const own = await ownVersion(tx, row.id);
        if (own === undefined || isLater(row, own)) {
          await put(tx, row);
        }
        this.#know(row.at);
      }
      await tx.query('replace into sync_state values (?, ?)', ['pulled', BigInt(last)]);
    });
  }

  async #state(name) {
    const { rows } = await this.#db.query('select value from sync_state where name = ?', [name]);
    return rows[0]?.value ?? 0n;
  }

  async #setState(name, value) {
    await this.#db.insertRows('sync_state', [{ name, value }], { onDuplicate: 'replace' });
  }
}

async function ownVersion(tx, id) {
  return (await tx.query('select at, client from note where id = ?', [id])).rows[0];
}

async function put(tx, { id, body, is_deleted, at, client }) {
  const values = [id, body, is_deleted, at, client];
  await tx.query('replace into note values (?, ?, ?, ?, ?)', values);
}

/** Whether a version of a note is later than another: the same answer everywhere. */
export function isLater(a, b) {
  return a.at === b.at ? a.client > b.client : a.at > b.at;
}

/** Waits for a time, or until the signal aborts. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
