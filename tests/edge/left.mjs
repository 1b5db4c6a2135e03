/**
 * Objects that leave memory without closing their databases, as objects do. Prints how many of them nothing
 * holds any more. To be run with `--expose-gc`, and the folder that `tools/sim-edge.mjs` prepares.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ObjectStorage } from './sim/storage.mjs';

const OBJECTS = 200;
const TURNS = 50;

const [script, first, more] = process.argv.slice(2);
const compiled = (file) => new WebAssembly.Module(fs.readFileSync(file));
globalThis.nacreModules = { first: compiled(first), more: compiled(more) };
const { connect } = await import(pathToFileURL(path.resolve(script)).href);

let released = 0;
const registry = new FinalizationRegistry(() => released++);

async function live() {
  const platform = { later: (ms, work) => setTimeout(work, ms) };
  const { storage } = new ObjectStorage(platform, { below: () => 0 }, { storeMs: 0 }).state({});
  registry.register(storage);
  const db = await connect({ state: { storage } });
  await db.exec('create table t (id int primary key, note text)');
  await db.query('insert into t values (?, ?)', [1, 'pearl']);
}

for (let at = 0; at < OBJECTS; at++) {
  await live();
}
for (let turn = 0; turn < TURNS && released < OBJECTS - 1; turn++) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  globalThis.gc();
}
console.log(released);
process.exit();
