/**
 * Rows of related tables as JSON in a text, written in SQL without JSON functions. A row is an array,
 * and each of its values null or an array of two texts: its SQL type and the value, percent-encoded,
 * so that nothing in it needs an escape.
 */

import { Column, is, SQL, sql, StringChunk, type SQLChunk } from 'drizzle-orm';
import type { BuildRelationalQueryResult } from 'drizzle-orm/relations';

type Selection = BuildRelationalQueryResult['selection'];

/** The text of a chunk of SQL that is only text. */
export function textChunk(chunk: SQLChunk | undefined): string | undefined {
  return is(chunk, StringChunk) ? chunk.value.join('') : undefined;
}

/** One related row. */
export function arrayOfLeaves(tableAlias: string, selection: Selection): SQL {
  const values = selection.map(({ field, tsKey, isJson }) => {
    if (isJson) {
      // Rows that are related to this one.
      return sql`coalesce(${sql.identifier(`${tableAlias}_${tsKey}`)}.${sql.identifier('data')}, 'null')`;
    }
    return leaf(is(field, SQL.Aliased) ? field.sql : (field as Column | SQL));
  });
  return sql`concat('[', ${sql.join(values, sql`, ',', `)}, ']')`;
}

/** All related rows, in an order if there is one. */
export function arrayOfRows(row: SQL, order: SQLChunk | undefined): SQL {
  return sql`concat('[', coalesce(string_agg(${row}, ','${order}), ''), ']')`;
}

function leaf(value: Column | SQL): SQL {
  const binary = is(value, Column) && /^(bytea|.*blob|(var)?binary)/i.test(value.getSQLType());
  const text = binary ? sql`hex(${value})` : sql`url_encode(cast(${value} as text))`;
  const type = binary ? sql`BLOB` : sql`' || typeof(${value}) || '`;
  return sql`coalesce('["${type}","' || ${text} || '"]', 'null')`;
}

/** The value of a related row; any other value as it is. */
export function decodeLeaf(value: unknown): unknown {
  if (!Array.isArray(value)) {
    return value;
  }
  const [type, encoded] = value as [string, string];
  const text = decodeURIComponent(encoded);
  switch (/^[A-Z]+/.exec(type)?.[0]) {
    case 'BOOLEAN':
      return text === 'true';
    case 'TINYINT':
    case 'SMALLINT':
    case 'INT':
    case 'FLOAT':
    case 'DOUBLE':
      return Number(text);
    case 'BIGINT':
      return BigInt(text);
    case 'DATE':
      return new Date(text);
    case 'TIMESTAMP':
    case 'TIMESTAMPTZ':
      // A Date has milliseconds.
      return /\.\d{3}0*[1-9]/.test(text)
        ? text
        : new Date(`${text.replace(' ', 'T').replace('+00', '')}Z`);
    case 'BLOB':
      return Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));
    default:
      return text;
  }
}
