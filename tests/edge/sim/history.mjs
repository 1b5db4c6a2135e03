/**
 * What was tried, what is certain, and whether a database shows a state that may be.
 *
 * Every transaction takes the next numbers of one sequence and writes a row for each, so a database shows those
 * up to some number, and nothing else.
 */

export const SCHEMA = [
  'create table if not exists head (id int primary key, n int not null)',
  `create table if not exists event (
     seq int primary key, attempt int not null, kind text not null, arg int not null, v int not null,
     note text not null, key (attempt))`,
  'insert into head values (1, 0) on conflict do nothing',
];

const noteOf = (attempt) => `note ${attempt} `.repeat(1 + ((attempt * 7) % 40));

export class History {
  #attempts = [];
  /** By number, the attempt that was answered, or that was shown by a reader. */
  #certain = new Map();
  /** The highest number that is certain. */
  last = 0;

  /** A transaction begins to take `count` numbers from `first` on. */
  begin(first, count, kind, arg) {
    this.#attempts.push({ first, count, kind, arg });
    return this.#attempts.length - 1;
  }

  /** The rows of an attempt. */
  rowsOf(id) {
    const { first, count, kind, arg } = this.#attempts[id];
    return Array.from({ length: count }, (_, at) => [first + at, id, kind, arg, 0, noteOf(id)]);
  }

  /** The last number of an attempt. */
  lastOf(id) {
    const { first, count } = this.#attempts[id];
    return first + count - 1;
  }

  answered(id) {
    const { first, count } = this.#attempts[id];
    for (let seq = first; seq < first + count; seq++) {
      this.#mustAgree(seq, id, 'an answer');
    }
  }

  /** Throws unless `rows` and `n` are what the first `n` transactions leave; `n` is at least `least`. */
  check({ n, rows }, least, who, isCertain) {
    const fail = (what) => {
      throw new Error(`WRONG: ${who} shows ${n} of at least ${least}: ${what}`);
    };
    if (n < least) {
      fail('what was answered is lost');
    }
    let base = 0;
    rows.forEach(({ kind, arg }) => (base = kind === 'trim' ? Math.max(base, arg) : base));
    if (rows.length !== n - base) {
      fail(`${rows.length} rows after ${base}`);
    }
    const values = new Map();
    rows.forEach(({ seq, kind, arg }) => {
      values.set(seq, 0);
      if (kind === 'amend' && arg > base) {
        values.set(arg, seq);
      }
    });
    rows.forEach((row, at) => {
      const { seq, attempt, kind, arg, v, note } = row;
      const tried = this.#attempts[attempt];
      const isOurs =
        tried !== undefined &&
        seq >= tried.first &&
        seq < tried.first + tried.count &&
        kind === tried.kind &&
        arg === tried.arg &&
        note === noteOf(attempt);
      const isWhole = tried !== undefined && tried.first + tried.count - 1 <= n;
      if (seq !== base + at + 1 || !isOurs || !isWhole || v !== values.get(seq)) {
        fail(`row ${JSON.stringify(row)}, v of ${values.get(seq)}`);
      }
      const certain = this.#certain.get(seq);
      if (certain !== undefined && certain !== attempt) {
        fail(`${seq} is of attempt ${attempt}, not ${certain}`);
      }
    });
    if (isCertain) {
      rows.forEach(({ seq, attempt }) => this.#mustAgree(seq, attempt, who));
    }
  }

  #mustAgree(seq, attempt, who) {
    const certain = this.#certain.get(seq);
    if (certain !== undefined && certain !== attempt) {
      throw new Error(`WRONG: ${who} has attempt ${attempt} as ${seq}, which was ${certain}`);
    }
    this.#certain.set(seq, attempt);
    this.last = Math.max(this.last, seq);
  }
}

/** All that a database shows, of one moment. */
export async function viewOf(db) {
  const sql =
    'select n, seq, attempt, kind, arg, v, note from head left join event on true order by seq';
  const { rows } = await db.query(sql);
  return { n: rows[0].n, rows: rows.filter(({ seq }) => seq !== null) };
}
