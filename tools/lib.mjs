/**
 * What the scripts here share: running commands, saying what is being done, and knowing whether
 * inputs changed. Plain Node, nothing installed: the scripts run before anything is.
 */

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root. */
export const root = fileURLToPath(new URL('..', import.meta.url));
/** Where cargo builds. */
export const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
const windows = process.platform === 'win32';

/** A command in node_modules/.bin. */
export function bin(name) {
  return path.join(root, 'node_modules', '.bin', windows ? `${name}.cmd` : name);
}

/** Something that went wrong in a way the reader can understand without a stack. */
export class Failure extends Error {}

/** Runs a script's main function; a Failure ends it with one line. */
export async function main(run) {
  try {
    await run();
  } catch (error) {
    console.error(error instanceof Failure ? `\n✗ ${error.message}` : error);
    process.exitCode = 1;
  }
}

/**
 * Runs a command. Its output is shown; with `quiet` only when it fails, with `silent` too not even
 * then; with `tee` it is shown and answered.
 * Throws a Failure when it fails.
 */
export function run(command, args = [], options = {}) {
  const { quiet = false, silent = false, tee = false, cwd = root, env = {}, okay = [0] } = options;
  const capture = quiet || tee;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', capture ? 'pipe' : 'inherit', capture ? 'pipe' : 'inherit'],
      shell: windows,
    });
    let output = '';
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      from?.on('data', (data) => {
        output += data;
        if (tee) {
          to.write(data);
        }
      });
    }
    child.on('error', (error) => reject(new Failure(`cannot run ${command}: ${error.message}`)));
    child.on('close', (code) => {
      if (okay.includes(code)) {
        resolve(output);
        return;
      }
      if (quiet && !silent) {
        process.stdout.write(output);
      }
      const failure = new Failure(
        `${path.basename(command)} ${args.join(' ')} failed (exit code ${code})`,
      );
      failure.output = output;
      reject(failure);
    });
  });
}

/** Sums up what `cargo test` prints. */
function cargoCounts(output) {
  const counts = { passed: 0, failed: 0, ignored: 0 };
  for (const match of output.matchAll(
    /test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored/g,
  )) {
    counts.passed += Number(match[1]);
    counts.failed += Number(match[2]);
    counts.ignored += Number(match[3]);
  }
  return counts;
}

/** Runs `cargo test` and answers its counts; a failure bears them too. */
export async function cargoTest(args) {
  try {
    return cargoCounts(await run('cargo', ['test', '--no-fail-fast', ...args], { quiet: true }));
  } catch (error) {
    error.counts = cargoCounts(error.output ?? '');
    throw error;
  }
}

/**
 * Runs the tests of the package in `folder` as `cargo test` has built them, with `env`, and answers
 * their counts; a failure bears them too. `cargo test -p` would build the engine again, without the
 * features that other packages ask of it.
 */
export async function cargoBuiltTest(folder, env) {
  const cwd = path.join(root, folder);
  const manifest = path.join(cwd, 'Cargo.toml');
  const built = await run('cargo', ['test', '-q', '--no-run', '--message-format', 'json'], {
    quiet: true,
    silent: true,
  });
  const tests = built
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter(({ manifest_path: of, profile }) => of === manifest && profile?.test)
    .map(({ executable }) => executable);
  const counts = { passed: 0, failed: 0, ignored: 0 };
  let failure = tests.length === 0 ? new Failure(`${folder} has no tests`) : undefined;
  for (const test of tests) {
    const output = await run(test, [], { cwd, env, quiet: true }).catch((error) => {
      failure ??= error;
      return error.output ?? '';
    });
    for (const [name, count] of Object.entries(cargoCounts(output))) {
      counts[name] += count;
    }
  }
  if (failure !== undefined) {
    failure.counts = counts;
    throw failure;
  }
  return counts;
}

/** What a command prints, or null when it cannot be run or fails. */
export function probe(command, args = []) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', shell: windows });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** `1.2 s` */
export function seconds(ms) {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

/** Every file below the given files and folders, relative to the root, sorted. */
export function filesBelow(...starts) {
  const found = [];
  const skip = new Set([
    'node_modules',
    'target',
    'dist',
    'dist.next',
    'pkg',
    'pkg.next',
    '.git',
    'tmp',
  ]);
  const visit = (relative) => {
    const stat = fs.statSync(path.join(root, relative), { throwIfNoEntry: false });
    if (stat?.isDirectory()) {
      for (const entry of fs.readdirSync(path.join(root, relative))) {
        if (!skip.has(entry)) {
          visit(path.join(relative, entry));
        }
      }
    } else if (stat?.isFile()) {
      found.push(relative);
    }
  };
  starts.forEach(visit);
  return found.sort();
}

/** A hash of names and contents of files, and of what else matters. */
export function fingerprint(files, ...extra) {
  const hash = createHash('sha256');
  for (const file of files) {
    hash.update(`${file}\0`).update(fs.readFileSync(path.join(root, file)));
  }
  return hash.update(extra.join('\0')).digest('hex');
}

/** Whether `stamp` holds this fingerprint and all outputs are there. */
export function upToDate(stamp, hash, outputs = []) {
  try {
    return (
      fs.readFileSync(path.join(root, stamp), 'utf8') === hash &&
      outputs.every((output) => fs.existsSync(path.join(root, output)))
    );
  } catch {
    return false;
  }
}

/** Remembers a fingerprint. */
export function writeStamp(stamp, hash) {
  fs.mkdirSync(path.dirname(path.join(root, stamp)), { recursive: true });
  fs.writeFileSync(path.join(root, stamp), hash);
}

/** Puts a finished folder in the place of the one before. */
export function replace(folder, next) {
  fs.rmSync(path.join(root, folder), { recursive: true, force: true });
  fs.renameSync(path.join(root, next), path.join(root, folder));
}

/**
 * Runs `work` while no other process is in a section of the same name: two builds at a time would
 * trip over each other's files. The lock of a process that no longer runs is taken over.
 */
export async function exclusively(name, work) {
  const lock = path.join(target, `nacre-${name}.lock`);
  fs.mkdirSync(target, { recursive: true });
  for (let told = false; ;) {
    try {
      fs.writeFileSync(lock, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') {
        throw error;
      }
    }
    if (!isRunning(lock)) {
      fs.rmSync(lock, { force: true });
      continue;
    }
    if (!told) {
      console.log(`${name}: waiting for another process`);
      told = true;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    return await work();
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

function isRunning(lock) {
  try {
    const pid = Number(fs.readFileSync(lock, 'utf8'));
    // Its maker may not have written its number yet.
    return pid === 0 || process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Adds the nightly toolchain of Rust with some components. `needed` is what needs it, for the error. */
export async function addNightly(needed, components) {
  if (probe('rustup', ['--version']) === null) {
    throw new Failure(`${needed} needs rustup: https://rustup.rs`);
  }
  await run('rustup', [
    'toolchain',
    'install',
    'nightly',
    '--profile',
    'minimal',
    ...components.flatMap((component) => ['-c', component]),
  ]);
}

/** A port of this machine that nothing listens on. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
