/** Fixtures of the API's tests: the places where a database can be. Not part of the package. */

import { connect, type ConnectOptions, type Database, type ErrorKind } from 'nacredb';
import { afterEach, expect } from 'vitest';

const inBrowser = typeof document !== 'undefined';
let names = 0;
let open: Database[] = [];
let folders: string[] = [];

/** A kind of place for databases; `fresh` makes the URL of an unused one. */
export interface Place {
  name: string;
  fresh: () => Promise<string>;
}

const memory: Place = { name: 'memory', fresh: () => Promise.resolve('memory://') };
const opfs: Place = {
  name: 'OPFS',
  fresh: () => Promise.resolve(`opfs://api-test-${Date.now()}-${names++}`),
};
const folder: Place = {
  name: 'folder',
  fresh: async () => {
    const [fs, os, path] = await Promise.all([
      import('node:fs'),
      import('node:os'),
      import('node:path'),
    ]);
    folders.push(fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-api-')));
    return folders.at(-1)!;
  },
};

/** A place that keeps databases after closing. */
export const durable: Place = inBrowser ? opfs : folder;
/** Every kind of place. */
export const places: Place[] = [memory, durable];

/** Connects. The database is closed after the test. */
export async function connected(url: string, options?: ConnectOptions): Promise<Database> {
  const db = await connect(url, options);
  open.push(db);
  return db;
}

/**
 * Makes a database with the table `t (id bigint primary key, name text)` of these names, numbered
 * from 1.
 */
export async function withNames(place: Place, ...names: string[]): Promise<Database> {
  const db = await connected(await place.fresh());
  await db.exec('create table t (id bigint primary key, name text)');
  for (const [i, name] of names.entries()) {
    await db.query('insert into t values (?, ?)', [i + 1, name]);
  }
  return db;
}

/** Expects a NacreError of a kind. */
export function expectKind(
  promise: Promise<unknown>,
  kind: ErrorKind,
  more: object = {},
): Promise<void> {
  return expect(promise).rejects.toMatchObject({ name: 'NacreError', kind, ...more });
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((db) => db.close()));
  if (folders.length > 0) {
    const fs = await import('node:fs');
    folders.splice(0).forEach((path) => fs.rmSync(path, { recursive: true, force: true }));
  }
});
