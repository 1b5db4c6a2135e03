/** Writes a module for each example of the documentation, before the tests that import them. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { examples, moduleOf } from './extract';

const root = path.resolve(import.meta.dirname, '../..');
const folder = path.join(import.meta.dirname, 'generated');

/**
 * Vitest runs this once before the tests of a project. Projects may run it at the same time, with
 * the same result.
 */
export default function generate(): void {
  fs.mkdirSync(folder, { recursive: true });
  const list = examples(root).map((example, index) => {
    return { ...example, name: `example-${String(index + 1).padStart(3, '0')}` };
  });
  const files = new Map(list.map((each) => [`${each.name}.ts`, moduleOf(each, each.name)]));
  files.set(
    'index.ts',
    `// Generated; do not edit.\nexport default ${JSON.stringify(list, null, 2)};\n`,
  );
  files.forEach((text, name) => write(path.join(folder, name), text));
  for (const name of fs.readdirSync(folder).filter((name) => !files.has(name))) {
    fs.rmSync(path.join(folder, name), { force: true });
  }
}

function write(file: string, text: string): void {
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) {
    fs.writeFileSync(file, text);
  }
}
