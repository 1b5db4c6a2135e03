/** Reads schemas, tables, views and their columns from `information_schema`. */

import type {
  ColumnMetadata,
  DatabaseIntrospector,
  DatabaseMetadataOptions,
  Kysely,
  SchemaMetadata,
  TableMetadata,
} from 'kysely';

/** Tables of Kysely's migrator. Kysely 0.28 and 0.29 export their names from different places. */
const INTERNAL: readonly string[] = ['kysely_migration', 'kysely_migration_lock'];

/** The columns of `information_schema` that are read. */
interface InformationSchema {
  'information_schema.schemata': { schema_name: string };
  'information_schema.tables': { table_schema: string; table_name: string; table_type: string };
  'information_schema.columns': {
    table_schema: string;
    table_name: string;
    column_name: string;
    ordinal_position: number;
    column_default: string | null;
    is_nullable: string;
    data_type: string;
    is_identity: string;
    is_generated: string;
  };
}

/** Kysely's introspector for Nacre. */
export class NacreIntrospector implements DatabaseIntrospector {
  readonly #db: Kysely<InformationSchema>;

  constructor(db: Kysely<any>) {
    // Plugins, such as one that changes the case of names, are for the tables of the application.
    this.#db = db.withoutPlugins();
  }

  async getSchemas(): Promise<SchemaMetadata[]> {
    const schemas = await this.#db
      .selectFrom('information_schema.schemata')
      .select('schema_name as name')
      .execute();
    return schemas.filter(({ name }) => name !== 'information_schema');
  }

  async getTables(
    { withInternalKyselyTables }: DatabaseMetadataOptions = { withInternalKyselyTables: false },
  ): Promise<TableMetadata[]> {
    const tables = await this.#db
      .selectFrom('information_schema.tables')
      .select(['table_schema as schema', 'table_name as name', 'table_type as type'])
      .where('table_schema', '!=', 'information_schema')
      .orderBy('table_name')
      .execute();
    const columns = await this.#columns();
    return tables
      .filter(({ name }) => withInternalKyselyTables || !INTERNAL.includes(name))
      .map(({ schema, name, type }) => {
        const isView = type === 'VIEW';
        // Kysely 0.29 also asks for `isForeign`.
        return { schema, name, isView, isForeign: false, columns: columns.get(name) ?? [] };
      });
  }

  async getMetadata(options?: DatabaseMetadataOptions): Promise<{ tables: TableMetadata[] }> {
    return { tables: await this.getTables(options) };
  }

  /** The columns of all tables, by the table's name. */
  async #columns(): Promise<Map<string, ColumnMetadata[]>> {
    const rows = await this.#db
      .selectFrom('information_schema.columns')
      .selectAll()
      .where('table_schema', '!=', 'information_schema')
      .orderBy('table_name')
      .orderBy('ordinal_position')
      .execute();
    const byTable = new Map<string, ColumnMetadata[]>();
    for (const row of rows) {
      const columns = byTable.get(row.table_name) ?? [];
      columns.push({
        name: row.column_name,
        dataType: row.data_type,
        isAutoIncrementing: row.is_identity === 'YES',
        isNullable: row.is_nullable === 'YES',
        hasDefaultValue: row.column_default !== null || row.is_generated !== 'NEVER',
      });
      byTable.set(row.table_name, columns);
    }
    return byTable;
  }
}
