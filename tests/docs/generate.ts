/** Writes a module for each example of the documentation, before the tests that import them. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { examples, moduleOf } from './extract';

const root = path.resolve(import.meta.dirname, '../..');
const folder = path.join(import.meta.dirname, 'generated');

/** Vitest runs this once before the tests of a project. */
export default function generate(): void {
  const next = fs.mkdtempSync(path.join(import.meta.dirname, 'generated.'));
  const list = examples(root).map((example, index) => {
    const name = `example-${String(index + 1).padStart(3, '0')}`;
    fs.writeFileSync(path.join(next, `${name}.ts`), moduleOf(example, name));
    return { ...example, name };
  });
  const index = `// Generated; do not edit.\nexport default ${JSON.stringify(list, null, 2)};\n`;
  fs.writeFileSync(path.join(next, 'index.ts'), index);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.renameSync(next, folder);
}
