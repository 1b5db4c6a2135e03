/**
 * Applies migrations that drizzle-kit generated. Each statement is committed by itself, and counted
 * in the table of migrations, so that a migration that failed goes on at the statement that failed.
 */

import type { Database } from 'nacredb';
import type { DrizzleDatabase } from './driver.js';

/** One migration: an entry of drizzle-kit's journal, and the text of its file. */
export interface MigrationFile {
  /** Name of its file, without the ending. */
  tag: string;
  /** When it was generated: milliseconds since 1970. Migrations run in this order. */
  when: number;
  /** Its statements, divided by drizzle-kit's breakpoints. */
  sql: string;
}

/** Options of both ways to migrate. */
export interface MigrationConfig {
  /** @default '__drizzle_migrations' */
  migrationsTable?: string;
}

const BREAKPOINT = /-->\s*statement-breakpoint/;
/** drizzle-kit writes it before `DROP TABLE`. Nacre has no such security that could be disabled. */
const DOES_NOTHING = /^ALTER TABLE \S+ DISABLE ROW LEVEL SECURITY;?$/i;
/** What drizzle-kit writes and Nacre spells otherwise, with the same meaning. */
const SPELLINGS: readonly [RegExp, string][] = [
  // The sequence of an identity column, where only the start can differ.
  [
    /\(sequence name "[^"]*" INCREMENT BY 1 MINVALUE 1 MAXVALUE \d+ START WITH (\d+) CACHE 1\)/gi,
    '(START WITH $1)',
  ],
  // The type of a custom column.
  [/(?<=" )"(bytea)"/gi, '$1'],
];

/** Applies the migrations that were not applied yet. Fails with the error of a statement. */
export async function applyMigrations(
  db: DrizzleDatabase<any> & { $client: Database },
  migrations: readonly MigrationFile[],
  { migrationsTable = '__drizzle_migrations' }: MigrationConfig = {},
): Promise<void> {
  const applied = await Applied.open(db.$client, migrationsTable);
  for (const migration of [...migrations].sort((a, b) => a.when - b.when)) {
    const done = await applied.statementsOf(migration);
    for (const [i, statement] of [...statementsIn(migration).entries()].slice(done)) {
      if (!DOES_NOTHING.test(statement)) {
        await db.$client.exec(statement);
      }
      await applied.count(migration, i + 1);
    }
  }
}

function statementsIn({ sql }: MigrationFile): string[] {
  return sql
    .split(BREAKPOINT)
    .map((text) => SPELLINGS.reduce((all, [from, to]) => all.replace(from, to), text.trim()))
    .filter((text) => text !== '');
}

/** The table of migrations: how many statements of each have run. */
class Applied {
  readonly #database: Database;
  readonly #table: string;

  private constructor(database: Database, table: string) {
    this.#database = database;
    this.#table = table;
  }

  static async open(database: Database, name: string): Promise<Applied> {
    const table = `"${name.replaceAll('"', '""')}"`;
    await database.exec(`
      create table if not exists ${table} (
        created_at bigint primary key,
        tag text not null,
        hash text not null,
        statements int not null
      )
    `);
    return new Applied(database, table);
  }

  async statementsOf({ when }: MigrationFile): Promise<number> {
    const { rows } = await this.#database.query<{ statements: number }>(
      `select statements from ${this.#table} where created_at = ?`,
      [when],
    );
    return rows[0]?.statements ?? 0;
  }

  async count({ when, tag, sql }: MigrationFile, statements: number): Promise<void> {
    await this.#database.query(
      `insert into ${this.#table} values (?, ?, ?, ?)
       on conflict (created_at) do update set statements = excluded.statements`,
      [when, tag, await sha256(sql), statements],
    );
  }
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
