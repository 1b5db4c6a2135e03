/**
 * The package as a stranger gets it: packed, installed in an empty folder without anything else,
 * type-checked, used from a ten-line script in Node, and from the examples' pages and programs in
 * the places of `pack-places.mjs`. With `--all` in every one of them, and the engine under WASI. Then the small
 * packages on top of it.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { bin, Failure, main, root, run, seconds } from './lib.mjs';
import { checkSmallPackages } from './pack-check-small.mjs';
import { checkPlace, MORE_PLACES, PLACES } from './pack-places.mjs';
import { setup } from './setup.mjs';
import { FIRST_LIMIT, WHOLE_LIMIT } from './size.mjs';
import { checkWasi } from './wasi.mjs';

const NODE_SCRIPT = `import { connect, sql } from 'nacredb';

const db = await connect('./data');
await db.exec('create table if not exists t (id bigint primary key, name text)');
await db.query(sql\`insert into t values (\${1}, \${'shell'}), (\${2}, \${'pearl'})\`);
const { rows } = await db.query('select * from t where id = ?', [2]);
await db.close();
const again = await connect('./data');
console.log(rows[0].name, String((await again.query('select count(*) as n from t')).rows[0].n));
await again.close();
`;

const TYPES = `import { connect, sql, NacreError, type Database } from 'nacredb';

const db: Database = await connect('memory://', { durability: 'strict' });
const { rows } = await db.query<{ n: bigint }>(sql\`select count(*) as n from t where id = \${1}\`);
const n: bigint | undefined = rows[0]?.n;
await db.transaction(async (tx) => tx.exec('delete from t'));
interface Shell { name: string }
class Pearl { constructor(readonly shell: Shell) {} }
const shell: Shell = { name: 'nacre' };
await db.query('insert into t values (?, ?)', [shell, new Pearl(shell)]);
await db.query('select :name', shell);
for await (const row of (await db.prepare<{ id: bigint }>('select id from t')).iterate()) void row.id;
await db.close().catch((error: unknown) => error instanceof NacreError && error.kind === 'io' && n);
`;

/** The entry's types at the edge: by its name, or by the condition that a project for Workers sets. */
const EDGE_TYPES = (
  entry,
) => `import { connect, type DurableState, type EdgeDatabase } from '${entry}';

export class Tenant {
  readonly #db: Promise<EdgeDatabase>;
  constructor(state: DurableState) {
    this.#db = connect({ state, memoryBytes: 2 ** 25 });
  }
  async fetch(): Promise<number> {
    const { rows } = await (await this.#db).query<{ n: number }>('select 1 as n');
    return rows[0]!.n;
  }
}
`;

/** The most bytes with Brotli of the package's scripts in a page, with the page's own. */
const SCRIPT_LIMIT = 35_000;

/**
 * Answers how many checks passed; throws at the first that does not. `all` adds the places that
 * take long; `quick` leaves out the limits of the engine's size, for an engine that was built
 * quickly.
 */
export async function packCheck({ all = false, quick = false } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-pack-'));
  try {
    const tarball = await pack(folder);
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error', tarball], {
      cwd: folder,
      quiet: true,
    });
    nothingElse(folder);
    await types(folder);
    await inNode(folder);
    const places = all ? [...PLACES, ...MORE_PLACES] : PLACES;
    await inPlaces(folder, tarball, places, quick);
    await checkSmallPackages(folder);
    if (all) {
      await checkWasi(folder);
      console.log('  pack: WASI: works');
    }
    return { passed: 4 + places.length + (all ? 1 : 0), failed: 0 };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function pack(folder) {
  const cwd = path.join(root, 'bindings/js');
  await run('npm', ['pack', '--pack-destination', folder, '--loglevel', 'error'], {
    cwd,
    quiet: true,
  });
  const name = fs.readdirSync(folder).find((file) => file.endsWith('.tgz'));
  return path.join(folder, name);
}

/** The package needs no other one at run time. */
function nothingElse(folder) {
  const installed = fs.readdirSync(path.join(folder, 'node_modules')).filter((n) => n[0] !== '.');
  if (installed.join() !== 'nacredb') {
    throw new Failure(`the package brought others with it: ${installed.join(', ')}`);
  }
}

/**
 * The package's types stand on their own, in a strict project without anything installed beside.
 */
async function types(folder) {
  fs.writeFileSync(path.join(folder, 'types.ts'), TYPES);
  fs.writeFileSync(path.join(folder, 'edge-types.ts'), EDGE_TYPES('nacredb/edge'));
  fs.writeFileSync(path.join(folder, 'worker-types.ts'), EDGE_TYPES('nacredb'));
  const options = [
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--types',
    '',
  ];
  const check = (...more) => run(bin('tsc'), [...options, ...more], { cwd: folder, quiet: true });
  await check('types.ts', 'edge-types.ts');
  await check('--customConditions', 'workerd', 'worker-types.ts');
}

async function inNode(folder) {
  fs.writeFileSync(path.join(folder, 'check.js'), NODE_SCRIPT);
  const output = await run(process.execPath, ['check.js'], { cwd: folder, quiet: true });
  if (output.trim() !== 'pearl 2') {
    throw new Failure(`the script in Node printed '${output.trim()}' instead of 'pearl 2'`);
  }
}

async function inPlaces(folder, tarball, places, quick) {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch(launchOptions());
  try {
    for (const place of places) {
      const started = Date.now();
      let sizes;
      try {
        sizes = await checkPlace(browser, folder, tarball, place);
      } catch (error) {
        throw error instanceof Failure ? new Failure(`${place.name}: ${error.message}`) : error;
      }
      const took = seconds(Date.now() - started);
      console.log(`  pack: ${place.name}: ${sizes ? sized(sizes) : 'works'} (${took})`);
      if (sizes) {
        checkSizes(place.name, sizes, quick);
      }
    }
  } finally {
    await browser.close();
  }
}

function sized({ first, all }) {
  const mb = (bytes) => `${(bytes / 1e6).toFixed(3)} MB`;
  const scripts =
    first.script === null ? '' : ` and ${(first.script / 1e3).toFixed(1)} kB of scripts`;
  return `with Brotli ${mb(first.wasm)} of WebAssembly${scripts} first, ${mb(all.wasm)} in all`;
}

function checkSizes(name, { first, all }, quick) {
  const limits = [
    ['scripts', first.script ?? 0, SCRIPT_LIMIT],
    ...(quick ? [] : [['WebAssembly loaded first', first.wasm, FIRST_LIMIT]]),
    ...(quick ? [] : [['all WebAssembly', all.wasm, WHOLE_LIMIT]]),
  ];
  for (const [what, bytes, limit] of limits) {
    if (bytes > limit) {
      throw new Failure(`${name}: ${what}: ${bytes} bytes with Brotli, at most ${limit}`);
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    const [all, quick] = ['--all', '--quick'].map((option) => process.argv.includes(option));
    await setup({ browser: true });
    await buildPackage({ quick });
    const { passed } = await packCheck({ all, quick });
    console.log(`pack: the tarball passed ${passed} checks`);
  });
}
