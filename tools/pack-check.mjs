/**
 * The package as a stranger gets it: packed, installed in an empty folder, used from a ten-line
 * script in Node and from a page bundled with Vite without configuration, driven in Chromium.
 */

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { bin, Failure, main, root, run } from './lib.mjs';
import { setup } from './setup.mjs';

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

const PAGE = `<!doctype html><title>pack check</title><output></output><script type="module" src="./main.js"></script>`;

const PAGE_SCRIPT = `import { connect } from 'nacredb';

const output = document.querySelector('output');
try {
  const db = await connect('opfs://pack-check');
  await db.exec('create table if not exists t (id bigint primary key, name text)');
  await db.exec("delete from t");
  await db.query('insert into t values (?, ?)', [1, 'pearl']);
  const { rows } = await db.query('select * from t');
  await db.close();
  output.textContent = rows[0].id + ' ' + rows[0].name;
} catch (error) {
  output.textContent = String(error);
}
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

/** Answers how many checks passed; throws at the first that does not. */
export async function packCheck() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-pack-'));
  try {
    const tarball = await pack(folder);
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error', tarball], {
      cwd: folder,
      quiet: true,
    });
    await types(folder);
    await inNode(folder);
    await onPage(folder);
    return { passed: 3, failed: 0 };
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
  return `./${name}`;
}

/**
 * The package's types stand on their own, in a strict project without anything installed beside.
 */
async function types(folder) {
  fs.writeFileSync(path.join(folder, 'types.ts'), TYPES);
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
  await run(bin('tsc'), [...options, 'types.ts'], { cwd: folder, quiet: true });
}

async function inNode(folder) {
  fs.writeFileSync(path.join(folder, 'check.js'), NODE_SCRIPT);
  const output = await run(process.execPath, ['check.js'], { cwd: folder, quiet: true });
  if (output.trim() !== 'pearl 2') {
    throw new Failure(`the script in Node printed '${output.trim()}' instead of 'pearl 2'`);
  }
}

async function onPage(folder) {
  fs.writeFileSync(path.join(folder, 'index.html'), PAGE);
  fs.writeFileSync(path.join(folder, 'main.js'), PAGE_SCRIPT);
  await run(bin('vite'), ['build', '--logLevel', 'warn'], { cwd: folder, quiet: true });
  const server = await serve(path.join(folder, 'dist'));
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch(launchOptions());
  try {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => document.querySelector('output').textContent !== '', null, {
      timeout: 30_000,
    });
    const text = await page.textContent('output');
    if (text !== '1 pearl') {
      throw new Failure(`the page showed '${text}' instead of '1 pearl'`);
    }
  } finally {
    await browser.close();
    server.close();
  }
}

const MEDIA = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };

function serve(folder) {
  const server = http.createServer((request, response) => {
    const name =
      request.url === '/' ? '/index.html' : new URL(request.url, 'http://localhost').pathname;
    fs.readFile(path.join(folder, path.normalize(name)), (error, data) => {
      response.writeHead(error ? 404 : 200, {
        'content-type': MEDIA[path.extname(name)] ?? 'text/plain',
      });
      response.end(error ? 'not found' : data);
    });
  });
  return new Promise((resolve) => server.listen(0, () => resolve(server)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup({ browser: true });
    await buildPackage();
    await packCheck();
    console.log('pack: the tarball works in Node and on a page bundled with Vite');
  });
}
