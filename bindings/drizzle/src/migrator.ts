/** Applies the migrations of a folder, in Node. */

import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import type { Database } from 'nacredb';
import type { DrizzleDatabase } from './driver.js';
import { applyMigrations, type MigrationConfig, type MigrationFile } from './migrations.js';

/** Applies the migrations of a folder that drizzle-kit generated, those that were not applied yet. */
export async function migrate(
  db: DrizzleDatabase<any> & { $client: Database },
  { migrationsFolder, ...config }: MigrationConfig & { migrationsFolder: string },
): Promise<void> {
  await applyMigrations(db, await read(migrationsFolder), config);
}

async function read(folder: string): Promise<MigrationFile[]> {
  const journal = JSON.parse(
    await fs.readFile(path.join(folder, 'meta/_journal.json'), 'utf8'),
  ) as { entries: { tag: string; when: number }[] };
  return Promise.all(
    journal.entries.map(async ({ tag, when }) => {
      return { tag, when, sql: await fs.readFile(path.join(folder, `${tag}.sql`), 'utf8') };
    }),
  );
}
