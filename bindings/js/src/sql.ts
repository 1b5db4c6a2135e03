/**
 * The `sql` tag: text with its values beside it, never inside it.
 *
 *     await db.query(sql`select * from t where id = ${id}`);
 */

const PARTS = Symbol('nacredb.sql');

/** A query with its parameters, made by the `sql` tag. Can be part of another one. */
export interface SqlQuery {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly [PARTS]: true;
}

/** Puts every `${value}` into the parameters; a `${query}` made by the tag is inserted as it is. */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): SqlQuery {
  let text = strings[0] ?? '';
  const parameters: unknown[] = [];
  values.forEach((value, i) => {
    if (isSqlQuery(value)) {
      text += value.text;
      parameters.push(...value.parameters);
    } else {
      text += '?';
      parameters.push(value);
    }
    text += strings[i + 1] ?? '';
  });
  return { text, parameters, [PARTS]: true };
}

/** A name of a table or column, quoted, for use inside the tag. */
sql.identifier = (name: string): SqlQuery => {
  return { text: `"${name.replaceAll('"', '""')}"`, parameters: [], [PARTS]: true };
};

/** Whether something was made by the tag. */
export function isSqlQuery(value: unknown): value is SqlQuery {
  return typeof value === 'object' && value !== null && PARTS in value;
}
