/**
 * The `sql` tag: text with its values beside it, never inside it.
 *
 *     await db.query(sql`select * from t where id = ${id}`);
 */

import { NacreError, nacreError } from '../../../worker/shared/errors.js';

const PARTS = Symbol('nacredb.sql');

/** A query with its parameters, made by the `sql` tag. Can be part of another one. */
export interface SqlQuery {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly [PARTS]: true;
}

/** Puts every `${value}` into the parameters; a `${query}` made by the tag is inserted as it is. */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): SqlQuery {
  let text = chunk(strings, 0);
  const parameters: unknown[] = [];
  values.forEach((value, i) => {
    if (isSqlQuery(value)) {
      text += value.text;
      // One by one: a call takes no more than some hundred thousand arguments.
      value.parameters.forEach((parameter) => parameters.push(parameter));
    } else {
      text += '?';
      parameters.push(value);
    }
    text += chunk(strings, i + 1);
  });
  return { text, parameters, [PARTS]: true };
}

/** Text between values. A template has none where JavaScript does not know what a backslash and the next letters mean. */
function chunk(strings: TemplateStringsArray, i: number): string {
  const text = strings[i] as string | undefined;
  if (text === undefined) {
    throw new NacreError({
      kind: 'syntax',
      message: `a backslash in the SQL text is no JavaScript escape: ${strings.raw[i]}`,
      hint: 'write it twice, or put the text into a ${value}',
    });
  }
  return text;
}

/** A name of a table or column, quoted, for use inside the tag. */
sql.identifier = (name: string): SqlQuery => {
  return { text: `"${name.replaceAll('"', '""')}"`, parameters: [], [PARTS]: true };
};

/**
 * Values, or parts made by the tag, one after the other with commas between them: `in (${sql.join(ids)})`,
 * `values ${sql.join(rows.map(({ id, name }) => sql`(${id}, ${name})`))}`.
 */
sql.join = (parts: readonly unknown[]): SqlQuery => {
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
    [PARTS]: true,
  };
};

/** Whether something was made by the tag. */
export function isSqlQuery(value: unknown): value is SqlQuery {
  return typeof value === 'object' && value !== null && PARTS in value;
}
