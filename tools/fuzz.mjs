/**
 * `npm run fuzz -- TARGET [--seconds N]`: lets libFuzzer look for inputs on which a target of
 * `tests/fuzz` panics, hangs or takes too much memory. Needs nightly Rust and a C++ compiler;
 * installs `cargo-fuzz` below `target/` when it is missing. What is learnt stays in
 * `target/fuzz/corpus`; what is found is below `target/fuzz/artifacts`.
 *
 * The last line is `fuzz: target=… seconds=… cpu=… executions=… findings=…`. A line is added to
 * `target/fuzz/account`.
 *
 * Each run begins with all that was learnt; `npm run fuzz -- TARGET --minimise` leaves of it what
 * covers as much.
 */

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { root, target } from './lib.mjs';

const TARGETS = [
  'sql',
  'segment',
  'log',
  'snapshot',
  'arrow',
  'csv',
  'json',
  'differential',
  'functions',
  'tlp',
];
const CARGO_FUZZ = '0.13.1';
/** An input that takes longer, or more memory, is a finding. */
const TIMEOUT_SECONDS = 60;
const MEMORY_MB = 2048;
const MAX_BYTES = {
  sql: 600,
  segment: 2000,
  arrow: 1500,
  csv: 800,
  json: 600,
  differential: 500,
  functions: 600,
  tlp: 500,
};

const [name, ...args] = process.argv.slice(2);
const option = (word, otherwise) =>
  args.includes(word) ? Number(args[args.indexOf(word) + 1]) : otherwise;
const seconds = option('--seconds', 60);
const minimise = args.includes('--minimise');
if (!TARGETS.includes(name) || !(seconds > 0)) {
  console.error(
    `usage: npm run fuzz -- TARGET [--seconds N | --minimise]\ntargets: ${TARGETS.join(', ')}`,
  );
  process.exit(2);
}

const home = path.join(target, 'fuzz');
const tools = path.join(home, 'tools');
const run = (command, list, options = {}) =>
  spawnSync(command, list, { cwd: path.join(root, 'tests/fuzz'), stdio: 'inherit', ...options });

if (!fs.existsSync(path.join(tools, 'bin', 'cargo-fuzz'))) {
  const installed = run('cargo', [
    'install',
    '-q',
    'cargo-fuzz',
    '--version',
    CARGO_FUZZ,
    '--locked',
    '--root',
    tools,
  ]);
  if (installed.status !== 0) {
    process.exit(1);
  }
}
const env = {
  ...process.env,
  RUSTUP_TOOLCHAIN: process.env.NACRE_NIGHTLY ?? 'nightly',
  PATH: `${path.join(tools, 'bin')}${path.delimiter}${process.env.PATH}`,
  // A folder of its own: nothing else is built with libFuzzer's instrumentation.
  CARGO_TARGET_DIR: path.join(home, 'build'),
};
// Nearly all of the engine is safe Rust, and Miri interprets what is not: without a sanitizer far
// more inputs are tried.
const common = ['--sanitizer', 'none', name];
const built = run('cargo-fuzz', ['build', ...common], { env });
if (built.status !== 0) {
  process.exit(built.status ?? 1);
}

const triple = spawnSync('rustc', ['-vV'], { env, encoding: 'utf8' }).stdout.match(
  /host: (\S+)/,
)[1];
const binary = path.join(env.CARGO_TARGET_DIR, triple, 'release', name);
const learnt = path.join(home, 'corpus', name);
const artifacts = path.join(home, 'artifacts', name);
[learnt, artifacts].forEach((folder) => fs.mkdirSync(folder, { recursive: true }));
const seeds = path.join(root, 'tests/fuzz/corpus', name);
const limits = [
  `-max_len=${MAX_BYTES[name] ?? 1000}`,
  `-timeout=${TIMEOUT_SECONDS}`,
  `-rss_limit_mb=${MEMORY_MB}`,
  `-malloc_limit_mb=${MEMORY_MB / 2}`,
  `-artifact_prefix=${artifacts}${path.sep}`,
];
if (minimise) {
  const fewer = `${learnt}.fewer`;
  fs.rmSync(fewer, { recursive: true, force: true });
  fs.mkdirSync(fewer);
  const merged = spawnSync(binary, ['-merge=1', ...limits, fewer, learnt], {
    env,
    stdio: 'ignore',
  });
  if (merged.status !== 0) {
    console.error('fuzz: the corpus stays as it was: libFuzzer could not merge it');
    process.exit(1);
  }
  const count = (folder) => fs.readdirSync(folder).length;
  console.log(`fuzz: target=${name} inputs=${count(learnt)} kept=${count(fewer)}`);
  fs.rmSync(learnt, { recursive: true });
  fs.renameSync(fewer, learnt);
  process.exit(0);
}
const before = fs.readdirSync(artifacts).length;
const cpuBefore = cpuOfChildren();
const started = Date.now();
const ran = spawnSync(
  binary,
  [
    `-max_total_time=${seconds}`,
    ...limits,
    '-len_control=20',
    '-print_final_stats=1',
    learnt,
    ...(fs.existsSync(seeds) ? [seeds] : []),
  ],
  { env, encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'], maxBuffer: 1 << 30 },
);
const lines = ran.stderr.split('\n');
const findings = fs.readdirSync(artifacts).length - before;
if (ran.status !== 0) {
  console.error(lines.slice(-120).join('\n'));
}
const executions =
  ran.stderr.match(/stat::number_of_executed_units:\s+(\d+)/)?.[1] ?? lastCount(lines);
const cpu = cpuBefore === undefined ? 'unknown' : Math.round(cpuOfChildren() - cpuBefore);
const line = `fuzz: target=${name} seconds=${Math.round((Date.now() - started) / 1000)} cpu=${cpu} executions=${executions} findings=${findings}`;
fs.appendFileSync(path.join(home, 'account'), `${new Date().toISOString()} ${line}\n`);
console.log(line);
process.exit(ran.status === 0 ? 0 : 1);

function lastCount(all) {
  const counts = all
    .map((text) => /^#(\d+)\s/.exec(text)?.[1])
    .filter((count) => count !== undefined);
  return counts.at(-1) ?? 0;
}

/** Seconds of processor time of the processes this one has waited for. */
function cpuOfChildren() {
  try {
    const fields = fs.readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
    return (Number(fields[13]) + Number(fields[14])) / 100;
  } catch {
    return undefined;
  }
}
