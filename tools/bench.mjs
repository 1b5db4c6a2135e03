/**
 * `npm run bench -- NAME [--option value]…`: builds the workloads and runs one. DuckDB, where a
 * workload needs it, is a prebuilt library that is fetched once into the target folder: version 2
 * from its Java package with Maven, or, where there is no Maven, the newest that npm has.
 * `NACRE_DUCKDB` names another library to use instead.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { Failure, main, probe, root, run, target } from './lib.mjs';

const MAVEN = 'org.duckdb:duckdb_jdbc:2.0.0.0';
const NPM = '@duckdb/node-bindings-linux-x64@1.5.6-r.1';
/** Parts of the engine by themselves: a crate of their own, which builds in a minute. */
const MICRO = [
  'access',
  'codecs',
  'documents',
  'encoded',
  'filter',
  'index-entries',
  'index-probe',
  'load-indexed',
  'load-over',
  'seek',
  'steps',
  'take',
];
/** Workloads that run in Chromium, in Cloudflare's runtime, or beside an S3 server. */
const ELSEWHERE = {
  browser: './bench-browser.mjs',
  'browser-idle': './bench-browser-idle.mjs',
  edge: './bench-edge.mjs',
  tier: './bench-tier.mjs',
  'tier-open': './bench-tier-open.mjs',
  'tier-browser': './bench-tier-browser.mjs',
};
const WITH_DUCKDB = [
  'bulk-insert',
  'disk-size',
  'json-bench',
  'json-scan',
  'json-seek',
  'ssb',
  'tpch',
  'upsert',
  'wide',
];

/** One file of a zip archive, found through the directory at its end. */
function unzip(archive, name) {
  const bytes = fs.readFileSync(archive);
  const end = bytes.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) =>
      bytes.readUInt16LE(at + offset),
    );
    if (bytes.toString('utf8', at + 46, at + 46 + nameBytes) === name) {
      const local = bytes.readUInt32LE(at + 42);
      const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
      const packed = bytes.subarray(start, start + bytes.readUInt32LE(at + 20));
      return bytes.readUInt16LE(at + 10) === 0 ? packed : inflateRawSync(packed);
    }
    at += 46 + nameBytes + extraBytes + commentBytes;
  }
  throw new Failure(`${archive} has no ${name}`);
}

async function fromMaven(folder, library) {
  await run(
    'mvn',
    ['-q', 'dependency:copy', `-Dartifact=${MAVEN}`, `-DoutputDirectory=${folder}`],
    {
      quiet: true,
    },
  );
  const machine = { x64: 'amd64', arm64: 'arm64' }[os.arch()];
  const jar = path.join(folder, 'duckdb_jdbc-2.0.0.0.jar');
  fs.writeFileSync(library, unzip(jar, `libduckdb_java.so_linux_${machine}`));
  fs.rmSync(jar);
}

async function fromNpm(folder, library) {
  await run('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', folder, NPM], {
    quiet: true,
  });
  fs.copyFileSync(
    path.join(folder, 'node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so'),
    library,
  );
}

/** Path of DuckDB's library, fetched if it is not there. */
async function duckdb() {
  if (process.env.NACRE_DUCKDB) {
    return process.env.NACRE_DUCKDB;
  }
  if (os.platform() !== 'linux') {
    throw new Failure('set NACRE_DUCKDB to the path of libduckdb; it is fetched on Linux only');
  }
  const folder = path.join(target, 'bench');
  fs.mkdirSync(folder, { recursive: true });
  const library = path.join(folder, 'libduckdb.so');
  if (!fs.existsSync(library)) {
    const next = `${library}.${process.pid}`;
    console.log("fetching DuckDB's library");
    await (probe('mvn', ['-v']) === null ? fromNpm(folder, next) : fromMaven(folder, next));
    fs.renameSync(next, library);
  }
  return library;
}

await main(async () => {
  const args = process.argv.slice(2);
  if (args[0] in ELSEWHERE) {
    const { bench } = await import(ELSEWHERE[args[0]]);
    await bench(args.slice(1));
    return;
  }
  const env = WITH_DUCKDB.includes(args[0]) ? { NACRE_DUCKDB: await duckdb() } : {};
  const workloads = MICRO.includes(args[0])
    ? ['nacre-bench-micro']
    : ['nacre-bench-compare', '--features', 'bundled'];
  const build = ['run', '-q', '--release', '-p', ...workloads, '--'];
  await run('cargo', [...build, ...args], { env, cwd: root });
});
