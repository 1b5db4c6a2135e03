/** Makes Drizzle's database object, with the query builders of `drizzle-orm/pg-core`. */

import { DefaultLogger, entityKind, type DrizzleConfig, type Logger } from 'drizzle-orm';
import { PgDatabase } from 'drizzle-orm/pg-core';
import {
  createTableRelationsHelpers,
  extractTablesRelationalConfig,
  type ExtractTablesWithRelations,
} from 'drizzle-orm/relations';
import type { Database } from 'nacredb';
import { NacreDialect } from './dialect.js';
import { NacreSession, type NacreQueryResultHKT, type Schema } from './session.js';

/** Drizzle's database over a Nacre database. */
export class DrizzleDatabase<
  S extends Record<string, unknown> = Record<string, never>,
> extends PgDatabase<NacreQueryResultHKT, S> {
  static override readonly [entityKind]: string = 'NacreDatabase';
}

/**
 * Drizzle on an open database. `schema` makes `db.query` work, and `logger: true` prints every
 * statement.
 */
export function drizzle<S extends Record<string, unknown> = Record<string, never>>(
  database: Database,
  config: DrizzleConfig<S> = {},
): DrizzleDatabase<S> & { $client: Database } {
  const dialect = new NacreDialect({ casing: config.casing });
  const schema = schemaOf(config.schema);
  const options = { logger: loggerOf(config.logger), cache: config.cache };
  const session = new NacreSession(database, dialect, schema, options);
  const db = new DrizzleDatabase<S>(
    dialect,
    session,
    schema as Schema<ExtractTablesWithRelations<S>> | undefined,
  );
  return Object.assign(db, { $client: database });
}

function loggerOf(logger: boolean | Logger | undefined): Logger | undefined {
  return typeof logger === 'boolean' ? (logger ? new DefaultLogger() : undefined) : logger;
}

/** The tables of a schema, and their relations. */
function schemaOf(fullSchema: Record<string, unknown> | undefined): Schema | undefined {
  if (fullSchema === undefined) {
    return undefined;
  }
  const { tables, tableNamesMap } = extractTablesRelationalConfig(
    fullSchema,
    createTableRelationsHelpers,
  );
  return { fullSchema, schema: tables, tableNamesMap };
}
