/**
 * The small packages as a stranger gets them: packed, installed beside `nacredb` and the library that
 * each is for, type-checked in a strict project, and used from a script in Node.
 * Their libraries are those of this repository, so that nothing is fetched.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { bin, Failure, root, run } from './lib.mjs';
import { SMALL_PACKAGES } from './small-packages.mjs';

const LIBRARIES = ['kysely', 'drizzle-orm', 'react', '@types/react', 'csstype'];

const SCRIPT = `import { integer, pgTable } from 'drizzle-orm/pg-core';
import { Kysely } from 'kysely';
import { connect } from 'nacredb';
import { drizzle } from 'nacredb-drizzle';
import { NacreDialect } from 'nacredb-kysely';
import { useLiveQuery } from 'nacredb-react';
import { liveStore } from 'nacredb-react/store';

export async function check(url) {
  const db = await connect(url);
  await db.exec('create table if not exists t (id int primary key)');
  const kysely = new Kysely({ dialect: new NacreDialect({ database: db }) });
  await kysely.insertInto('t').values({ id: 7 }).onConflict((on) => on.doNothing()).execute();
  const [{ id }] = await drizzle(db).select().from(pgTable('t', { id: integer() }));
  const n = await new Promise((resolve) => {
    liveStore(db, 'select * from t').subscribe(({ rows, loading }) => {
      if (!loading) resolve(rows.length);
    });
  });
  await kysely.destroy();
  return [id, n, typeof useLiveQuery].join(' ');
}
`;

const TYPES = `import { integer, pgTable } from 'drizzle-orm/pg-core';
import { Kysely } from 'kysely';
import { connect } from 'nacredb';
import { applyMigrations, drizzle } from 'nacredb-drizzle';
import { migrate } from 'nacredb-drizzle/migrator';
import { NacreDialect } from 'nacredb-kysely';
import { useLiveQuery } from 'nacredb-react';
import { liveStore } from 'nacredb-react/store';

const database = await connect('memory://');
const kysely = new Kysely<{ t: { id: number } }>({ dialect: new NacreDialect({ database }) });
const one: { id: number } | undefined = await kysely.selectFrom('t').selectAll().executeTakeFirst();
const t = pgTable('t', { id: integer() });
const db = drizzle(database, { schema: { t } });
const many: { id: number | null }[] = await db.query.t.findMany();
await migrate(db, { migrationsFolder: './drizzle' });
await applyMigrations(db, []);
const ids: readonly { id: number }[] = liveStore<{ id: number }>(database, 'select 1').getState().rows;
const hook: boolean = useLiveQuery(database, 'select 1').loading;
void [one, many, ids, hook];
// @ts-expect-error A URL is not a database.
new NacreDialect({ database: 'memory://' });
// @ts-expect-error A URL is not a database.
drizzle('memory://');
// @ts-expect-error A query is a text.
liveStore(database, 7);
`;

/** Checks them in a folder in which `nacredb` is installed. Throws at the first that fails. */
export async function checkSmallPackages(folder) {
  const tarballs = [];
  for (const name of SMALL_PACKAGES) {
    const cwd = path.join(root, 'bindings', name);
    const options = ['--pack-destination', folder, '--loglevel', 'error', '--json'];
    const [{ filename }] = JSON.parse(await run('npm', ['pack', ...options], { cwd, quiet: true }));
    tarballs.push(`./${filename}`);
  }
  const libraries = LIBRARIES.map((name) => path.join(root, 'node_modules', name));
  const quiet = ['--no-audit', '--no-fund', '--loglevel', 'error'];
  const install = ['install', '--install-links', ...quiet, ...libraries, ...tarballs];
  await run('npm', install, { cwd: folder, quiet: true });
  fs.writeFileSync(path.join(folder, 'small.js'), SCRIPT);
  await types(folder);
  await inNode(folder);
}

async function types(folder) {
  fs.writeFileSync(path.join(folder, 'small-types.ts'), TYPES);
  // Drizzle's declarations name drivers of many databases, which are not installed.
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', ''];
  const target = ['--target', 'es2022', '--module', 'nodenext'];
  await run(bin('tsc'), [...options, ...target, 'small-types.ts'], { cwd: folder, quiet: true });
}

async function inNode(folder) {
  const main = `import { check } from './small.js';\nconsole.log(await check('memory://'));\n`;
  fs.writeFileSync(path.join(folder, 'small-main.js'), main);
  const output = await run(process.execPath, ['small-main.js'], { cwd: folder, quiet: true });
  if (output.trim() !== '7 1 function') {
    throw new Failure(`the small packages printed '${output.trim()}' instead of '7 1 function'`);
  }
}
