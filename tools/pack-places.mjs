/**
 * The bundlers and runtimes in which `tools/pack-check.mjs` tries the packed package. Each is an
 * example of `examples/`, copied to a folder of its own. Bundlers that are among the repository's
 * own dependencies are used from there, in the version that the example asks for; what only `--all`
 * runs is installed from the registry.
 */

import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { bin, Failure, root, run } from './lib.mjs';
import { checkEdgeRoute } from './pack-edge.mjs';
import { checkFile } from './pack-file.mjs';
import { checkPage } from './pack-page.mjs';

const require = createRequire(path.join(root, 'package.json'));
/** Printed by the examples for Bun and Deno, in their first run and in the second. */
const READINGS = [1, 2].map((times) =>
  [1, 2, 3].map((sensor) => `sensor ${sensor}: ${times} readings, ${sensor + 18}.0 °C\n`).join(''),
);

/**
 * Every place: its name, its example, and what is done in the folder that the example was copied
 * to, in which the package is installed. Answers the sizes of what a page loads, if there is one.
 */
export const PLACES = [
  { name: 'Vite', example: 'browser-webpack', check: withoutConfiguration },
  { name: 'webpack', example: 'browser-webpack', check: page(bin('webpack')) },
  { name: 'esbuild', example: 'browser-esbuild', check: page('node', './build.mjs') },
  { name: 'Rollup', example: 'browser-rollup', check: page(bin('rollup'), '--config', '--silent') },
  { name: 'no bundler, SRI and CSP', example: 'browser-plain', check: page('node', './build.mjs') },
];

/** The places that take long, or need much from the registry. */
export const MORE_PLACES = [
  { name: 'Next.js', example: 'browser-next', install: true, check: nextPage },
  {
    name: 'Next.js, edge runtime',
    example: 'edge-next',
    install: true,
    check: (_browser, cwd) => checkEdgeRoute(cwd),
  },
  { name: 'a page from a file', example: 'browser-file', check: fileOrigin },
  { name: 'Bun', example: 'bun', install: true, check: readings('bun', './readings.mjs') },
  {
    name: 'Deno',
    example: 'deno',
    install: true,
    check: readings('deno', 'run', '--allow-read', '--allow-write', './readings.mjs'),
  },
];

/** Copies a place's example below `folder`, provides what it depends on, and checks it there. */
export async function checkPlace(browser, folder, tarball, { name, example, install, check }) {
  const copy = path.join(folder, `in ${name}`.replaceAll(/\W+/g, '-'));
  const isSource = (file) => !['node_modules', 'dist'].includes(path.basename(file));
  fs.cpSync(path.join(root, 'examples', example), copy, { recursive: true, filter: isSource });
  const file = path.join(copy, 'package.json');
  const manifest = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (install) {
    manifest.dependencies.nacredb = `file:${tarball}`;
    fs.writeFileSync(file, JSON.stringify(manifest));
    const quiet = ['--no-audit', '--no-fund', '--loglevel', 'error'];
    await run('npm', ['install', ...quiet], { cwd: copy, quiet: true });
  } else {
    // The package itself is installed in the folder above.
    Object.entries(manifest.devDependencies ?? {}).forEach(([dependency, version]) =>
      link(copy, dependency, version),
    );
  }
  return check(browser, copy);
}

/** Makes a dependency of the repository one of a folder. */
function link(folder, dependency, version) {
  const place = path.join(root, 'node_modules', dependency);
  const present = require(path.join(place, 'package.json')).version;
  if (present !== version) {
    throw new Failure(`${dependency} is ${present} here, and ${version} in the example`);
  }
  const name = path.join(folder, 'node_modules', dependency);
  fs.mkdirSync(path.dirname(name), { recursive: true });
  fs.symlinkSync(place, name, 'junction');
}

function page(command, ...args) {
  return async (browser, cwd) => {
    await run(command, args, { cwd, quiet: true });
    return checkPage(browser, path.join(cwd, 'dist'));
  };
}

/** The sources that webpack bundles, where Vite looks for them by itself. */
async function withoutConfiguration(browser, cwd) {
  fs.rmSync(path.join(cwd, 'webpack.config.js'));
  fs.renameSync(path.join(cwd, 'src/main.js'), path.join(cwd, 'main.js'));
  return page(bin('vite'), 'build', '--logLevel', 'warn')(browser, cwd);
}

async function nextPage(browser, cwd) {
  const next = path.join(cwd, 'node_modules/.bin/next');
  await run(next, ['build'], { cwd, quiet: true, env: { NEXT_TELEMETRY_DISABLED: '1' } });
  const { first, all } = await checkPage(browser, path.join(cwd, 'out'));
  // Most of the scripts are React and Next.js.
  return { first: { ...first, script: null }, all };
}

async function fileOrigin(browser, cwd) {
  await run('node', ['./build.mjs'], { cwd, quiet: true });
  await checkFile(browser, path.join(cwd, 'dist'));
}

/** Runs a script twice: the second time it finds what the first one wrote. */
function readings(command, ...args) {
  return async (_browser, cwd) => {
    for (const expected of READINGS) {
      const runtime = path.join(cwd, 'node_modules/.bin', command);
      const printed = await run(runtime, args, { cwd, quiet: true });
      if (printed !== expected) {
        throw new Failure(`${command} printed:\n${printed}`);
      }
    }
  };
}
