/**
 * The SQL of `drizzle-orm/pg-core`, except for relational queries: where Drizzle writes PostgreSQL's
 * JSON functions, this dialect joins texts.
 */

import { entityKind, is, Many, SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { arrayOfLeaves, arrayOfRows, textChunk } from './relational.js';

type Arguments = Parameters<PgDialect['buildRelationalQueryWithoutPK']>[0];
type Built = ReturnType<PgDialect['buildRelationalQueryWithoutPK']>;

/** Drizzle's dialect for Nacre. */
export class NacreDialect extends PgDialect {
  static override readonly [entityKind]: string = 'NacreDialect';

  override buildRelationalQueryWithoutPK(config: Arguments): Built {
    const built = super.buildRelationalQueryWithoutPK(config);
    const { nestedQueryRelation, tableAlias } = config;
    if (nestedQueryRelation !== undefined && is(built.sql, SQL)) {
      const leaves = arrayOfLeaves(tableAlias, built.selection);
      const replaced = is(nestedQueryRelation, Many)
        ? replace(built.sql, 'coalesce(json_agg(', (chunks) => arrayOfRows(leaves, chunks[3]))
        : replace(built.sql, 'json_build_array(', () => leaves);
      if (!replaced) {
        throw new Error('this version of drizzle-orm builds relational queries in another way');
      }
    }
    return built;
  }
}

/** Replaces the expression that starts with a text, and answers whether there was one. */
function replace(query: SQL, start: string, by: (chunks: SQL['queryChunks']) => SQL): boolean {
  if (textChunk(query.queryChunks[0])?.startsWith(start) === true) {
    const chunks = query.queryChunks;
    chunks.splice(0, chunks.length, ...by([...chunks]).queryChunks);
    return true;
  }
  return query.queryChunks.some((chunk) => {
    const inner = is(chunk, SQL.Aliased) ? chunk.sql : chunk;
    return is(inner, SQL) && replace(inner, start, by);
  });
}
