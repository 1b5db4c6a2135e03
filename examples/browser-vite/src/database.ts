// The expenses in this browser's own file system: the schema, and every statement the page runs.

import { connect, sql, type Database } from 'nacredb';

export interface Expense {
  id: number;
  day: string;
  category: string;
  what: string;
  /** A decimal number as text, so that no cent is lost. */
  amount: string;
}

export interface CategoryTotal {
  category: string;
  total: string;
  /** Share of the month's sum, from 0 to 1. */
  share: number;
}

/** Opens the database, creating it on the first visit. */
export async function openExpenses(): Promise<Expenses> {
  const db = await connect('opfs://expenses', { types: { bigint: 'number', date: 'string' } });
  await db.exec(`
    create table if not exists expense (
      id bigint primary key auto_increment,
      day date not null,
      category varchar(40) not null,
      what varchar(200) not null,
      amount decimal(12, 2) not null
    )
  `);
  return new Expenses(db);
}

export class Expenses {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Calls a function now, and again whenever a tab has changed the expenses. */
  async follow(changed: () => Promise<void>): Promise<void> {
    await this.#db.live.query('select count(*) from expense', [], changed);
  }

  /** Stores an expense. */
  async add({ day, category, what, amount }: Omit<Expense, 'id'>): Promise<void> {
    await this.#db.query(sql`
      insert into expense (day, category, what, amount)
      values (${day}, ${category}, ${what}, ${amount})
    `);
  }

  async remove(id: number): Promise<void> {
    await this.#db.query('delete from expense where id = ?', [id]);
  }

  async latest(limit = 20): Promise<Expense[]> {
    const { rows } = await this.#db.query<Expense>(
      sql`select * from expense order by day desc, id desc limit ${limit}`,
    );
    return rows;
  }

  /** The totals of the month of a day, largest first. */
  async totals(day: string): Promise<CategoryTotal[]> {
    const { rows } = await this.#db.query<CategoryTotal>(sql`
      select
        category,
        sum(amount) as total,
        cast(sum(amount) / sum(sum(amount)) over () as double) as share
      from expense
      where date_trunc('month', day) = date_trunc('month', cast(${day} as date))
      group by category
      order by total desc
    `);
    return rows;
  }

  /** Every category used so far, for completion. */
  async categories(): Promise<string[]> {
    const { rows } = await this.#db.query<{ category: string }>(
      'select distinct category from expense order by category',
    );
    return rows.map(({ category }) => category);
  }
}
