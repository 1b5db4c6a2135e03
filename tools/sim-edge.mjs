/**
 * `npm run sim -- edge [--seeds N] [--from N] [--jobs N] [--replay SEED] [--plant NAME]`: the package as it
 * is shipped for the edge, on a simulated platform (`tests/edge/sim`). It takes the package as it was built
 * last.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { Worker } from 'node:worker_threads';
import { Failure, root } from './lib.mjs';

/** What can be wrong on purpose. */
export const PLANTS = ['answer-early', 'request-early', 'alarm-late', 'alarm-once'];

const DIST = path.join(root, 'bindings/js/dist');
const RUN = path.join(root, 'tests/edge/sim/run.mjs');
/** A seed takes less than a second. */
const HANG_MS = 120_000;

/** Runs the simulation as the command line says. Throws a Failure if a seed fails. */
export async function simEdge(args) {
  const { replay, ...settings } = settingsOf(args);
  const { seeds, counts, failed } = await simulateEdge(
    replay === undefined ? settings : { ...settings, from: replay, seeds: 1 },
  );
  const [first] = failed;
  if (first !== undefined) {
    const plant = settings.plant === undefined ? '' : ` --plant ${settings.plant}`;
    first.story.forEach((line) => console.log(line));
    console.log(`seed ${first.seed}: ${first.failure}`);
    console.log(`again: npm run sim -- edge --replay ${first.seed}${plant}`);
  }
  const text = Object.entries(counts).map(([what, n]) => `${what.replaceAll(' ', '_')}=${n}`);
  console.log(`sim: edge seeds=${seeds} failures=${failed.length} ${text.join(' ')}`);
  if (first !== undefined) {
    throw new Failure(`${failed.length} of ${seeds} seeds failed`);
  }
}

function settingsOf(args) {
  const settings = {};
  for (let at = 0; at < args.length; at += 2) {
    const [name, value] = [args[at].replace(/^--/, ''), args[at + 1]];
    if (name === 'plant' && PLANTS.includes(value)) {
      settings.plant = value;
    } else if (['seeds', 'from', 'jobs', 'replay'].includes(name) && Number(value) > 0) {
      settings[name] = Number(value);
    } else {
      throw new Failure(`sim edge: ${args[at]} ${value ?? ''} is not known`);
    }
  }
  return settings;
}

/** Runs seeds; with a planted bug, up to the first that finds it. */
export async function simulateEdge({
  seeds = 200,
  from = 1,
  jobs = os.availableParallelism(),
  plant,
}) {
  const counts = {};
  const failed = [];
  let next = from;
  await withEngine(async (engine) => {
    const work = async () => {
      while (next < from + seeds && (plant === undefined || failed.length === 0)) {
        const outcome = await runSeed({ seed: next++, plant, ...engine });
        for (const [what, n] of Object.entries(outcome.counts)) {
          counts[what] = (counts[what] ?? 0) + n;
        }
        if (outcome.failure !== null) {
          failed.push(outcome);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(jobs, seeds) }, work));
  });
  return { seeds: next - from, counts, failed: failed.sort((a, b) => a.seed - b.seed) };
}

/** What a seed did. */
export async function replayEdge(seed) {
  return withEngine((engine) => runSeed({ seed, ...engine }));
}

/** Does something with the script and the engine, which are there meanwhile. */
async function withEngine(work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-sim-edge-'));
  try {
    return await work(prepared(folder));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** The files of the engine, by their names in `globalThis.nacreModules`. */
const ENGINE = { first: 'nacre_bg.wasm', more: 'nacre_more.wasm' };

/** Puts the package's script into a folder, to be imported by Node, which imports no engine. */
export function prepareEdge(folder) {
  const script = path.join(folder, 'edge.mjs');
  let text = fs.readFileSync(path.join(DIST, 'edge.js'), 'utf8');
  for (const [name, file] of Object.entries(ENGINE)) {
    const line = `import ${name} from "./${file}";`;
    if (!text.includes(line)) {
      throw new Failure(`the script for the edge does not say ${line}`);
    }
    text = text.replace(line, `const ${name} = globalThis.nacreModules.${name};`);
  }
  fs.writeFileSync(script, text);
  const files = Object.entries(ENGINE).map(([name, file]) => [name, path.join(DIST, file)]);
  return { script, files: Object.fromEntries(files) };
}

function prepared(folder) {
  const { script, files } = prepareEdge(folder);
  const modules = Object.entries(files).map(([name, file]) => [
    name,
    new WebAssembly.Module(fs.readFileSync(file)),
  ]);
  return { script, modules: Object.fromEntries(modules) };
}

/** Runs a seed in a thread of its own, whose globals the platform replaces. */
function runSeed(data) {
  return new Promise((resolve) => {
    const worker = new Worker(RUN, { workerData: data });
    const end = (outcome) => {
      clearTimeout(timer);
      void worker.terminate();
      resolve({ seed: data.seed, counts: {}, story: [], ...outcome });
    };
    const timer = setTimeout(() => end({ failure: 'it hangs' }), HANG_MS);
    worker.once('message', end);
    worker.once('error', (error) => end({ failure: error.stack ?? String(error) }));
  });
}
