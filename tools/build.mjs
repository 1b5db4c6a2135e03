/**
 * Builds the npm package into `bindings/js/dist`: seven scripts (page, worker, a thread of
 * its own, blob stores, IndexedDB, Node, the edge), the engine in
 * two files, and types. Then builds the small packages on top of it. Does nothing when no input
 * changed.
 */

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildWasm } from './build-wasm.mjs';
import {
  bin,
  exclusively,
  filesBelow,
  fingerprint,
  main,
  replace,
  root,
  run,
  seconds,
  upToDate,
  writeStamp,
} from './lib.mjs';
import { setup } from './setup.mjs';
import { buildSmallPackages } from './small-packages.mjs';

const DIST = 'bindings/js/dist';
/** Where the next one is made, so that what is being used stays whole until it is replaced. */
const NEXT = 'bindings/js/dist.next';
const STAMP = `${DIST}/.stamp`;
const OUTPUTS = [
  'blobs.js',
  'edge.js',
  'edge-light.js',
  'index.js',
  'indexeddb.js',
  'node.js',
  'thread.js',
  'worker.js',
  'nacre_bg.wasm',
  'nacre_more.wasm',
  'types/bindings/js/src/index.d.ts',
];
const ENTRIES = {
  blobs: 'bindings/js/src/blobs.ts',
  edge: 'bindings/js/src/edge.ts',
  'edge-light': 'bindings/js/src/edge.ts',
  index: 'bindings/js/src/index.ts',
  indexeddb: 'worker/browser/indexeddb.ts',
  node: 'bindings/js/src/node.ts',
  thread: 'bindings/js/src/thread.ts',
  worker: 'worker/browser/worker.ts',
};

/**
 * With `quick` the engine is compiled in half the time, and larger; with `keepEngine` it is taken
 * as it was built last, for work on the JavaScript side only.
 */
export function buildPackage({ quick = false, keepEngine = false } = {}) {
  return exclusively('build', async () => {
    if (!keepEngine) {
      await buildWasm({ quick });
    }
    await build();
    await buildSmallPackages();
  });
}

async function build() {
  const pkg = ['nacre.js', 'nacre.d.ts', 'nacre_bg.wasm'].map(
    (file) => `bindings/wasm/pkg/${file}`,
  );
  const inputs = [
    ...filesBelow(
      'bindings/js',
      'bindings/wasm/more.js',
      'bindings/wasm/wire.js',
      'worker',
      'tools/divide',
      'tsconfig.json',
      'tools/build.mjs',
      'tools/first-load.mjs',
    ),
    ...pkg,
  ];
  const hash = fingerprint(inputs);
  if (
    upToDate(
      STAMP,
      hash,
      OUTPUTS.map((output) => `${DIST}/${output}`),
    )
  ) {
    return;
  }
  const started = Date.now();
  const dist = path.join(root, NEXT);
  fs.rmSync(dist, { recursive: true, force: true });
  fs.mkdirSync(dist, { recursive: true });
  // The engine's glue has no dependency but itself: its types are a file to copy.
  const glueTypes = path.join(dist, 'types/bindings/wasm/pkg');
  fs.mkdirSync(glueTypes, { recursive: true });
  fs.copyFileSync(
    path.join(root, 'bindings/wasm/pkg/nacre.d.ts'),
    path.join(glueTypes, 'nacre.d.ts'),
  );
  await run(bin('tsc'), [
    '-p',
    'bindings/js/tsconfig.build.json',
    '--outDir',
    path.join(dist, 'types'),
  ]);
  await bundle(dist);
  await divide(dist);
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(root, 'bindings/js/LICENSE'));
  replace(DIST, NEXT);
  writeStamp(STAMP, hash);
  console.log(`build: the npm package took ${seconds(Date.now() - started)}`);
}

/** Divides the engine into what runs when a page does what most pages do, and the rest. */
async function divide(dist) {
  const whole = path.join(root, 'bindings/wasm/pkg/nacre_bg.wasm');
  const first = path.join(dist, 'nacre_bg.wasm');
  const needed = path.join(dist, 'needed.txt');
  const tool = ['run', '-q', '-p', 'nacre-divide', '--profile', 'tool', '--'];
  await run('cargo', [...tool, 'instrument', whole, first]);
  await run(process.execPath, ['tools/first-load.mjs', dist, needed]);
  await run('cargo', [...tool, 'divide', whole, needed, first, path.join(dist, 'nacre_more.wasm')]);
  fs.rmSync(needed);
  markBuild(dist, ['nacre_bg.wasm', 'nacre_more.wasm']);
}

/**
 * Adds a section to both files that says which build they are of: the second one may come from a
 * cache, or from a later deployment, and would fit by its types only.
 */
export function markBuild(dist, names) {
  const files = names.map((name) => path.join(dist, name));
  const hash = createHash('sha256');
  files.forEach((file) => hash.update(fs.readFileSync(file)));
  const build = Buffer.from(hash.digest('hex').slice(0, 16));
  const name = Buffer.from('build');
  const content = Buffer.concat([Buffer.of(name.length), name, build]);
  // A custom section has number 0, and lengths below 128 are one byte.
  const section = Buffer.concat([Buffer.of(0, content.length), content]);
  files.forEach((file) => fs.appendFileSync(file, section));
}

/** What a Worker's script has for `performance`, whose clock stands still while a request computes. */
const EDGE_CLOCK = [path.join(root, 'worker/edge/clock.ts'), 'clock'];

const MINIFY = {
  blobs: true,
  indexeddb: true,
  worker: true,
  index: { compress: true, mangle: { toplevel: false }, codegen: { removeWhitespace: true } },
};

/** Names the engine's files as Next.js wants them for its edge runtime. */
const ENGINE_AS_MODULE = {
  name: 'engine-as-module',
  resolveId: (id) => (id.endsWith('.wasm') ? { id: `${id}?module`, external: true } : null),
};

/** What some entries need beside the options of all. */
const SPECIAL = {
  edge: {
    transform: {
      inject: { performance: EDGE_CLOCK },
      // Where Cloudflare has one, its messages come before anything else of the isolate may run.
      define: { MessageChannel: 'undefined' },
    },
  },
  'edge-light': {
    transform: {
      inject: { performance: EDGE_CLOCK },
      // Next.js has some there that throw.
      define: { 'globalThis.setImmediate': 'undefined', MessageChannel: 'undefined' },
    },
    external: ['./blobs.js'],
    plugins: [ENGINE_AS_MODULE],
  },
};

/** One script an entry, so that a page without a bundler loads two files and not twenty. */
async function bundle(dist) {
  const { rolldown } = await import('rolldown');
  for (const [name, entry] of Object.entries(ENTRIES)) {
    const build = await rolldown({
      input: path.join(root, entry),
      // Scripts are loaded by `connectInThread` only, files by the edge only.
      external: [/^node:/, './thread.js', './blobs.js', /\.wasm$/],
      platform: name === 'node' ? 'node' : 'browser',
      ...SPECIAL[name],
    });
    await build.write({
      dir: dist,
      entryFileNames: `${name}.js`,
      format: 'esm',
      codeSplitting: false,
      // No bundler touches the worker, and few pages that have none minify what they load. Of the page's
      // script the names of classes stay: a console shows them.
      minify: MINIFY[name] ?? false,
      // The declarations beside the scripts have the documentation.
      comments: { jsdoc: false },
    });
    await build.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup();
    await buildPackage({ keepEngine: process.argv.includes('--keep-engine') });
  });
}
