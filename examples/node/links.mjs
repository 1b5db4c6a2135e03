/**
 * The links and their clicks in a database. Clicks arrive one by one, in short transactions; the
 * statistics are computed from all of them by the same table, without a copy and without counters
 * to keep in step.
 */

import { randomBytes } from 'node:crypto';
import { connect, NacreError } from 'nacredb';

/** Attempts of a transaction that conflicts with another. */
const ATTEMPTS = 5;

/** Opens the links kept in a folder; the folder is created if it does not exist. */
export async function openLinks(folder) {
  const db = await connect(folder, { types: { bigint: 'number', decimal: 'number' } });
  await db.exec(`
    create table if not exists link (
      code varchar(12) primary key,
      url text not null,
      created timestamp not null
    );
    create table if not exists click (
      id bigint primary key,
      code varchar(12) not null,
      clicked timestamp not null,
      referrer text
    );
    create index if not exists click_code on click (code);
  `);
  return new Links(db);
}

class Links {
  #db;

  constructor(db) {
    this.#db = db;
  }

  /** Stores a link and answers its code. */
  async add(url) {
    const code = randomBytes(4).toString('base64url');
    await this.#db.query('insert into link values (?, ?, ?)', [code, url, new Date()]);
    return code;
  }

  /**
   * Answers where a code leads and records the click, or answers undefined if there is no such
   * code.
   */
  async follow(code, referrer) {
    return this.#retrying(async (tx) => {
      const found = await tx.query('select url from link where code = ?', [code]);
      if (found.rowCount === 0) {
        return undefined;
      }
      const last = await tx.query('select coalesce(max(id), 0) as id from click');
      await tx.query('insert into click values (?, ?, ?, ?)', [
        last.rows[0].id + 1,
        code,
        new Date(),
        referrer ?? null,
      ]);
      return found.rows[0].url;
    });
  }

  /** The most clicked links, with their share of all clicks and their most frequent referrer. */
  async top(limit = 10) {
    const { rows } = await this.#db.query(
      `select
         link.code,
         link.url,
         count(click.id) as clicks,
         round(100.0 * count(click.id) / nullif(sum(count(click.id)) over (), 0), 1) as percent,
         (
           select c.referrer from click c
           where c.code = link.code and c.referrer is not null
           group by c.referrer
           order by count(*) desc, c.referrer
           limit 1
         ) as referrer
       from link
       left join click on click.code = link.code
       group by link.code, link.url
       order by clicks desc, link.code
       limit ?`,
      [limit],
    );
    return rows;
  }

  /** The number of clicks in each of the last hours that had any, newest first. */
  async perHour(hours = 24) {
    const { rows } = await this.#db.query(
      `select date_trunc('hour', clicked) as hour, count(*) as clicks
       from click
       group by date_trunc('hour', clicked)
       order by hour desc
       limit ?`,
      [hours],
    );
    return rows;
  }

  close() {
    return this.#db.close();
  }

  /** Two clicks at the same moment take the same number: the second transaction runs again. */
  async #retrying(work) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#db.transaction(work);
      } catch (error) {
        const again =
          error instanceof NacreError && (error.retryable || error.kind === 'constraint');
        if (!again || attempt === ATTEMPTS) {
          throw error;
        }
      }
    }
  }
}
