/**
 * The pages of `npm run bench -- browser` and `tier-browser`: bundles `bench/web` as an application would, puts the files
 * that the systems load beside it, and serves all of it on this machine.
 */

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as path from 'node:path';
import { root, target } from '../lib.mjs';

const SOURCE = path.join(root, 'bench/web');
const OUT = path.join(target, 'bench/browser');
/** Pages, and the scripts that they begin with. */
const PAGES = {
  'start-empty': 'start/empty.ts',
  'start-nacre': 'start/nacre.ts',
  'start-sqlite': 'start/sqlite.ts',
  'start-duckdb': 'start/duckdb.ts',
  'start-pglite': 'start/pglite.ts',
  page: './page.ts',
  threads: './threads.ts',
  tier: './tier.ts',
};
const WORKERS = {
  'empty-worker': 'workers/empty-worker.ts',
  'nacre-worker': 'workers/nacre-worker.ts',
  'sqlite-worker': 'workers/sqlite-worker.ts',
  'pglite-worker': 'workers/pglite-worker.ts',
  'nacre-thread': 'workers/nacre-thread.ts',
  'sqlite-thread': 'workers/sqlite-thread.ts',
};

/** What the systems fetch at run time, by package. */
const FILES = {
  nacredb: ['worker.js', 'blobs.js', 'indexeddb.js', 'nacre_bg.wasm', 'nacre_more.wasm'],
  '@sqlite.org/sqlite-wasm': ['sqlite3.wasm'],
  '@duckdb/duckdb-wasm': ['duckdb-eh.wasm', 'duckdb-browser-eh.worker.js'],
  '@electric-sql/pglite': ['pglite.wasm', 'pglite.data', 'initdb.wasm'],
};

const MEDIA = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
};

/** Bundles the pages and workers; answers the folder. */
export async function bundlePages() {
  const { build } = await import('esbuild');
  fs.rmSync(OUT, { recursive: true, force: true });
  const options = {
    outdir: OUT,
    bundle: true,
    minify: true,
    target: 'es2022',
    // The built package, which the project's own configuration replaces by its sources.
    tsconfigRaw: '{}',
    conditions: ['browser'],
    // Asked for in Node only.
    external: ['node:*', 'fs', 'fs/promises', 'module', 'path', 'url', 'util'],
    logLevel: 'error',
  };
  const module = { ...options, format: 'esm', splitting: true, chunkNames: '[name]-[hash]' };
  // Each by itself: what two pages share would otherwise become a file more for both to fetch.
  for (const [name, file] of Object.entries({ ...PAGES, ...WORKERS })) {
    await build({ ...module, entryPoints: { [name]: path.join(SOURCE, file) } });
  }
  const probe = path.join(SOURCE, 'workers/memory.ts');
  await build({ ...options, format: 'iife', entryPoints: { 'duckdb-worker': probe } });
  for (const name of Object.keys(PAGES)) {
    const script = `<script type="module" src="./${name}.js"></script>`;
    const page = `<!doctype html><title>${name}</title><link rel="icon" href="data:," />${script}`;
    fs.writeFileSync(path.join(OUT, `${name}.html`), page);
  }
  copyFiles();
  // DuckDB-Wasm's worker is a classic script.
  const worker = fs.readFileSync(path.join(OUT, 'duckdb-browser-eh.worker.js'));
  fs.appendFileSync(path.join(OUT, 'duckdb-worker.js'), worker);
  return OUT;
}

const packageOf = (name) => path.join(root, 'node_modules', name);

function copyFiles() {
  for (const [name, files] of Object.entries(FILES)) {
    for (const file of files) {
      fs.copyFileSync(path.join(packageOf(name), 'dist', file), path.join(OUT, file));
    }
  }
}

/** Versions of the systems' packages, as they are installed. */
export function versions() {
  return Object.keys(FILES).map((name) => {
    const manifest = fs.readFileSync(path.join(packageOf(name), 'package.json'), 'utf8');
    return `${name} ${JSON.parse(manifest).version}`;
  });
}

/**
 * Serves the folder on a free port of localhost, and files of another one under `data/`. Browsers may
 * keep what they have fetched, with the code that they have compiled.
 */
export function servePages(folder, data) {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const name = path.basename(pathname);
    const file = path.join(pathname.startsWith('/data/') ? data : folder, name);
    fs.readFile(file, (error, bytes) => {
      if (error) {
        response.writeHead(404).end('not found');
        return;
      }
      const type = MEDIA[path.extname(name)] ?? 'application/octet-stream';
      response.writeHead(200, { 'content-type': type, 'cache-control': 'max-age=3600' }).end(bytes);
    });
  });
  return new Promise((resolve) => server.listen(0, 'localhost', () => resolve(server)));
}
