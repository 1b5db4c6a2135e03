/** Values on their way between Drizzle's columns and nacredb. */

import type { Query } from 'drizzle-orm';
import type { QueryTypingsValue } from 'drizzle-orm';
import type { Database, Parameter, QueryResult, Transaction } from 'nacredb';

/** Columns of dates and timestamps write the form of `Date.toISOString`. */
const ISO = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** The parameters of a query in types that nacredb compares without a cast. */
export function toParameters(query: Query, parameters: unknown[]): Parameter[] {
  const typings = (query as Query & { typings?: QueryTypingsValue[] }).typings ?? [];
  return parameters.map((value, i) => {
    if (typeof value === 'string' && ISO.test(value)) {
      switch (typings[i]) {
        case 'date':
          return value.slice(0, 10);
        case 'timestamp':
          return new Date(value);
      }
    }
    return value as Parameter;
  });
}

/**
 * Reads rows in whose JSON columns a text is JSON's text: Drizzle's columns parse every text. The
 * database may have been opened with `types: { json: 'string' }`, or parse JSON itself.
 */
export class JsonReader {
  readonly #client: Database | Transaction;
  #parsed: Promise<boolean> | null = null;

  constructor(client: Database | Transaction) {
    this.#client = client;
  }

  /**
   * The values of each row. With `arraysToo`, JSON arrays are texts as well: in relational queries,
   * an array is a value of a related row.
   */
  async valuesOf(result: QueryResult, arraysToo: boolean): Promise<unknown[][]> {
    const rows = Array.from({ length: result.rowCount }, (_, row) => result.values(row));
    const json = result.columns.flatMap(({ type }, i) => (type === 'JSON' ? [i] : []));
    if (json.length > 0 && rows.length > 0 && (await this.#isParsed())) {
      for (const row of rows) {
        for (const i of json) {
          if (typeof row[i] === 'string' || (arraysToo && Array.isArray(row[i]))) {
            row[i] = JSON.stringify(row[i]);
          }
        }
      }
    }
    return rows;
  }

  #isParsed(): Promise<boolean> {
    this.#parsed ??= this.#client
      .query(`select cast('""' as json) as empty`)
      .then(({ rows }) => rows[0]?.['empty'] === '');
    return this.#parsed;
  }
}
