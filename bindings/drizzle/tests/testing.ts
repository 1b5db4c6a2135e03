/** Fixtures of the Drizzle tests: a database with the tables of `schema.ts`, empty or with books. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { execFileSync } from 'node:child_process';
import type { Logger } from 'drizzle-orm';
import { connect, type Database } from 'nacredb';
import { drizzle, type DrizzleDatabase } from 'nacredb-drizzle';
import { migrate } from 'nacredb-drizzle/migrator';
import { afterAll, afterEach } from 'vitest';
import * as schema from './schema.js';

export type Books = DrizzleDatabase<typeof schema> & { $client: Database };

const open: Database[] = [];
const folders: string[] = [];

/** Drizzle over an empty database, which is closed after the test. */
export async function empty(logger?: Logger): Promise<Books> {
  const database = await connect('memory://');
  open.push(database);
  return drizzle(database, { schema, logger });
}

/** An empty folder, which is removed after the tests of the file. */
export function emptyFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-drizzle-'));
  folders.push(folder);
  return folder;
}

/** Runs `drizzle-kit generate` for a schema, as its documentation says, and answers what it prints. */
export function generate(schemaFile: string, out: string, name: string): string {
  const root = path.resolve(import.meta.dirname, '../../..');
  const kit = path.join(root, 'node_modules/drizzle-kit/bin.cjs');
  const options = ['--dialect', 'postgresql', '--schema', schemaFile, '--out', out, '--name', name];
  return execFileSync(process.execPath, [kit, 'generate', ...options], {
    cwd: import.meta.dirname,
    stdio: 'pipe',
    encoding: 'utf8',
  });
}

/** Drizzle over the tables of `schema.ts`, made by the migration that drizzle-kit generated. */
export async function migrated(logger?: Logger): Promise<Books> {
  const db = await empty(logger);
  await migrate(db, { migrationsFolder: path.join(import.meta.dirname, 'migrations') });
  return db;
}

/** The same with two authors, three books and two genres. */
export async function withBooks(logger?: Logger): Promise<Books> {
  const db = await migrated(logger);
  await db.insert(schema.author).values([
    { name: 'Ada', email: 'ada@x.example', born: new Date('1815-12-10'), settings: { dark: true } },
    { name: 'Bob', active: false, editor: 1, settings: [1, '2'] },
  ]);
  await db.insert(schema.book).values([
    { author: 1, title: 'Notes "A"\n\\100 % é', price: '10.50', sold: 9007199254740993n },
    { author: 1, title: 'Bernoulli', rating: 4.5, opens: '08:30:00' },
    { author: 2, title: 'Shells', price: '3.00', cover: Uint8Array.of(0, 255) },
  ]);
  await db.insert(schema.genre).values([{ label: 'maths' }, { label: 'sea' }]);
  await db.insert(schema.bookGenre).values([
    { book: 10, genre: 1 },
    { book: 12, genre: 1 },
    { book: 12, genre: 2 },
  ]);
  return db;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((db) => db.close()));
});

afterAll(() => folders.forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));
