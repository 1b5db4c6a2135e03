/** The `sql` tag: SQL text with its values beside it, never inside it. */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';

/** Marks queries made by the tag, so that no other object is inserted as SQL. */
const MADE_BY_TAG: unique symbol = Symbol('nacredb.sql');

/** A query with its parameters, made by the `sql` tag. It can be part of another one. */
export interface SqlQuery {
  /** SQL text with a `?` for each parameter. */
  readonly text: string;
  /** Values of the parameters, in order. */
  readonly parameters: readonly unknown[];
  /** Keeps other objects from being passed as a query. */
  readonly [MADE_BY_TAG]: true;
}

/**
 * Makes a query from a template: every `${value}` becomes a parameter, so it is never read as SQL.
 * A `${query}` made by the tag is inserted with its own parameters.
 *
 * @example
 * ```ts
 * const recent = sql`id > ${1}`;
 * const query = sql`select id from visit where ${recent} and page = ${'home'}`;
 * console.log(query.text); // select id from visit where id > ? and page = ?
 * console.log(query.parameters); // [ 1, 'home' ]
 * console.log((await db.query(query)).rows); // [ { id: 3n } ]
 * ```
 */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): SqlQuery {
  let text = textAt(strings, 0);
  const parameters: unknown[] = [];
  values.forEach((value, i) => {
    if (isSqlQuery(value)) {
      text += value.text;
      // Not `push(...)`: the number of arguments of a call is limited.
      value.parameters.forEach((parameter) => parameters.push(parameter));
    } else {
      text += '?';
      parameters.push(value);
    }
    text += textAt(strings, i + 1);
  });
  return { text, parameters, [MADE_BY_TAG]: true };
}

/** Text between two values. It is undefined where a backslash begins no valid JavaScript escape. */
function textAt(strings: TemplateStringsArray, i: number): string {
  const text = strings[i] as string | undefined;
  if (text === undefined) {
    throw new NacreError({
      kind: 'syntax',
      message: `invalid escape sequence in the SQL text: ${strings.raw[i]}`,
      hint: 'double the backslash, or pass the text as a ${value}',
    });
  }
  return text;
}

export declare namespace sql {
  /**
   * Quotes the name of a table or column, for use inside the tag.
   *
   * @example
   * ```ts
   * const column = sql.identifier('ms');
   * const { rows } = await db.query(sql`select id from visit order by ${column} limit 1`);
   * console.log(rows); // [ { id: 2n } ]
   * ```
   */
  let identifier: (name: string) => SqlQuery;

  /**
   * Joins values, or queries made by the tag, with commas. An empty array is an error of kind `type`,
   * because SQL has no empty list.
   *
   * @example
   * ```ts
   * const rows = [{ id: 4, page: 'docs', ms: 70 }, { id: 5, page: 'home', ms: 60 }];
   * const tuples = rows.map(({ id, page, ms }) => sql`(${id}, ${page}, ${ms})`);
   * await db.query(sql`insert into visit values ${sql.join(tuples)}`);
   *
   * const times = sql.join([60, 70]);
   * const fast = await db.query(sql`select count(*) as n from visit where ms in (${times})`);
   * console.log(fast.rows); // [ { n: 2n } ]
   * ```
   */
  let join: (parts: readonly unknown[]) => SqlQuery;
}

sql.identifier = (name) => {
  return { text: `"${name.replaceAll('"', '""')}"`, parameters: [], [MADE_BY_TAG]: true };
};

sql.join = (parts) => {
  if (!Array.isArray(parts) || parts.length === 0) {
    throw nacreError(
      'type',
      'sql.join takes an array of at least one value: SQL has no empty list',
    );
  }
  const queries = parts.map((part) => (isSqlQuery(part) ? part : sql`${part}`));
  return {
    text: queries.map(({ text }) => text).join(', '),
    parameters: queries.flatMap(({ parameters }) => parameters),
    [MADE_BY_TAG]: true,
  };
};

/** Whether a value was made by the tag. */
export function isSqlQuery(value: unknown): value is SqlQuery {
  return typeof value === 'object' && value !== null && MADE_BY_TAG in value;
}

/** Throws unless SQL text can be sent. */
export function mustBeText(sql: unknown): asserts sql is string {
  if (typeof sql !== 'string') {
    throw nacreError('type', 'SQL must be a string or a query made with the sql tag');
  }
  // The engine would see U+FFFD in place of a lone surrogate.
  if (/\p{Surrogate}/u.test(sql)) {
    throw nacreError(
      'syntax',
      'the SQL text contains a lone surrogate, which is not valid Unicode',
    );
  }
}
