/**
 * `npm run tidy`: the rules of the house as tests, and its figures as the last line: import circles
 * inside crates, assertions per function in the crates of storage, the largest source folder, the
 * median length of a file, and how many places a new encoding, function, operator, index kind and
 * statement takes.
 *
 * Places are counted, not estimated: each dummy of `tests/tidy/dummies` is applied to a copy of the
 * tree below the target folder, and has to compile. `--forget` also leaves out each place in turn:
 * the compiler, or the test that the place names, has to object. What has not changed since it last
 * passed is not compiled again; `--all` compiles it.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { spawnSync } from 'node:child_process';
import { cargoTest, Failure, fingerprint, main, root, run, target } from './lib.mjs';

const KINDS = ['encoding', 'function', 'operator', 'index', 'statement'];
const DUMMIES = 'tests/tidy/dummies';
const copy = path.join(target, 'tidy', 'tree');
/**
 * The copy's own target folder: cargo names what it builds by the path inside the workspace, so
 * that copy and original would mix.
 */
const built = path.join(target, 'tidy', 'target');
/** What the copy needs to compile: the workspace, without what only tests read. */
const NEEDED =
  /^(Cargo\.(toml|lock)|rust-toolchain\.toml|\.cargo\/.*|README\.md|(engine|bindings|tests|bench|tools|web|docs|examples)\/.*\.(rs|toml|md|sql|txt))$/;

/**
 * Runs the tests, prints the figures and answers the tests' counts. Throws a Failure, with the
 * counts, when a test fails or a dummy does not apply or compile.
 */
export async function tidy({ forget = false, all = false } = {}) {
  let failure;
  const counts = await cargoTest(['-p', 'nacre-tidy']).catch((error) => {
    failure = error;
    return error.counts;
  });
  const output = await run('cargo', ['run', '-q', '-p', 'nacre-tidy', '--', 'figures'], {
    quiet: true,
  });
  const figures = output.split('\n').filter((line) => /^\w+=/.test(line));
  const tree = source();
  for (const kind of KINDS) {
    let places = '?';
    try {
      places = (await count(kind, tree, { forget, all })) ?? '?';
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      console.log(`✗ ${kind}: ${error.message}`);
      failure ??= error;
    }
    figures.push(`${kind}_places=${places}`);
  }
  console.log(`tidy: ${figures.join(' ')}`);
  if (failure !== undefined) {
    failure.counts = counts;
    throw failure;
  }
  return counts;
}

/** The files that the copy has, by path. */
function source() {
  const list = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  const names = list.stdout.split('\n').filter((name) => NEEDED.test(name));
  if (names.length === 0) {
    throw new Failure('tidy needs a clone: git lists no files here');
  }
  const present = names.filter((name) => fs.existsSync(path.join(root, name)));
  return new Map(present.map((name) => [name, fs.readFileSync(path.join(root, name), 'utf8')]));
}

/** How many places a kind's dummy takes, after it has compiled; undefined without a dummy. */
async function count(kind, tree, { forget, all }) {
  const file = path.join(root, DUMMIES, `${kind}.mjs`);
  if (!fs.existsSync(file)) {
    return undefined;
  }
  const { default: dummy } = await import(pathToFileURL(file).href);
  const stamp = path.join(target, 'tidy', `${kind}${forget ? '-forget' : ''}`);
  const code = [...tree.keys()].filter((name) => /^(Cargo|engine|bindings)/.test(name));
  const hash = fingerprint([...code, path.relative(root, file)]);
  const last = fs.existsSync(stamp) ? fs.readFileSync(stamp, 'utf8') : '';
  if (!all && last === hash) {
    return dummy.places.length;
  }
  sync(apply(kind, tree, dummy.places));
  const whole = await check(dummy.check);
  if (!whole.accepted) {
    throw new Failure(`its dummy does not compile\n${whole.output}`);
  }
  // The only place cannot be forgotten beside others.
  if (forget && dummy.places.length > 1) {
    for (const [index, place] of dummy.places.entries()) {
      await leaveOut(kind, tree, dummy, index, place);
    }
  }
  fs.writeFileSync(stamp, hash);
  return dummy.places.length;
}

/** A place that is left out has to be missed, by the compiler or by the test that it names. */
async function leaveOut(kind, tree, dummy, index, place) {
  if (place.create !== undefined) {
    return;
  }
  const others = dummy.places.filter((_, other) => other !== index);
  const without = apply(kind, tree, others);
  sync(without);
  const partial = await check(dummy.check);
  const name = `place ${index + 1} (${place.edit})`;
  if (!partial.accepted) {
    console.log(`  ${kind}: without ${name}: ${partial.reason}`);
    return;
  }
  const lost = undeclared(without, others);
  if (lost !== undefined) {
    console.log(`  ${kind}: without ${name}: no_rust_file_lies_unused fails on ${lost}`);
    return;
  }
  if (place.test !== undefined) {
    const [crate, filter] = place.test;
    const ran = await run('cargo', ['test', '-q', '-p', crate, filter], inCopy).then(
      () => true,
      () => false,
    );
    if (!ran) {
      console.log(`  ${kind}: without ${name}: the test ${filter} of ${crate} fails`);
      return;
    }
  }
  throw new Failure(`${name} can be left out, and nothing objects`);
}

/** A new Rust file that no module declares, by the rule of the tidy test `no_rust_file_lies_unused`. */
function undeclared(tree, places) {
  const created = places.flatMap(({ create: files }) => Object.keys(files ?? {}));
  return created.find((file) => {
    const module = path.posix.parse(file.replace(/\/mod\.rs$/, '.rs'));
    const parents = ['mod.rs', 'lib.rs', 'main.rs'].map((name) =>
      tree.get(`${module.dir}/${name}`),
    );
    const text = parents.filter((found) => found !== undefined).join('\n');
    const listed = text.includes('mod $') && text.includes(` ${module.name}::`);
    return !listed && !new RegExp(`\\bmod ${module.name};`).test(text);
  });
}

/** The tree with a dummy's places in it. */
function apply(kind, tree, places) {
  const next = new Map(tree);
  for (const place of places) {
    if (place.create !== undefined) {
      create(next, place.create);
    } else {
      edit(next, place);
    }
  }
  return next;
}

/** A place that is new: one file, or one folder with what is in it. */
function create(next, files) {
  const names = Object.keys(files);
  const folder = path.posix.dirname(names[0]);
  const isOne = names.length === 1 || names.every((name) => name.startsWith(`${folder}/`));
  const isNew = names.length === 1 || ![...next.keys()].some((n) => n.startsWith(`${folder}/`));
  if (!isOne || !isNew || names.some((name) => next.has(name))) {
    throw new Failure(`${names.join(', ')}: not one new file or folder`);
  }
  names.forEach((name) => next.set(name, files[name]));
}

/** A place in a file that is there: one insertion beside a line that the file has once. */
function edit(next, { edit: name, after, before, insert }) {
  const lines = next.get(name)?.split('\n');
  if (lines === undefined) {
    throw new Failure(`${name}: no such file`);
  }
  const anchor = (after ?? before).trim();
  const at = lines.flatMap((line, number) => (line.trim() === anchor ? [number] : []));
  if (at.length !== 1) {
    throw new Failure(`${name}: has ${at.length} lines \`${anchor}\`, not one`);
  }
  lines.splice(at[0] + (after === undefined ? 0 : 1), 0, ...insert.replace(/\n$/, '').split('\n'));
  next.set(name, lines.join('\n'));
}

/** Makes the copy hold exactly these files, and touches no file that does already. */
function sync(wanted) {
  const visit = (folder) => {
    for (const entry of fs.readdirSync(path.join(copy, folder), { withFileTypes: true })) {
      const name = path.posix.join(folder, entry.name);
      if (entry.isDirectory()) {
        visit(name);
      } else if (!wanted.has(name)) {
        fs.rmSync(path.join(copy, name));
      }
    }
  };
  fs.mkdirSync(copy, { recursive: true });
  visit('');
  for (const [name, text] of wanted) {
    const file = path.join(copy, name);
    if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) {
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, text);
    }
  }
}

const inCopy = { quiet: true, silent: true, cwd: copy, env: { CARGO_TARGET_DIR: built } };

/**
 * Whether the compiler accepts the copy. Code of a dummy that is never used counts as refused, as
 * clippy denies it.
 */
async function check(crates) {
  const args = ['check', '--offline', ...crates.flatMap((name) => ['-p', name])];
  try {
    const output = await run('cargo', args, inCopy);
    const unused = /^warning: .*dummy.*\bnever (used|read|constructed)\b.*$/im.exec(output);
    return { accepted: unused === null, reason: unused?.[0], output };
  } catch (error) {
    const reason = /^error.*$/m.exec(error.output ?? '')?.[0] ?? error.message;
    return { accepted: false, reason, output: error.output ?? error.message };
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    const args = process.argv.slice(2);
    await tidy({ forget: args.includes('--forget'), all: args.includes('--all') });
  });
}
