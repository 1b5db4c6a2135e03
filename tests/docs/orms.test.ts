/** Every line of `docs/ORMS.md` that names a test names one that is there. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

test('the lines of ORMS.md are run by tests', () => {
  const text = fs.readFileSync(path.join(root, 'docs/ORMS.md'), 'utf8');
  const named = [...text.matchAll(/^\|.*\| `([^`]+\.test\.ts)`: (.+) \|$/gm)];
  expect(named.length).toBeGreaterThan(40);
  const missing = named.filter(([, file, name]) => {
    const source = fs.readFileSync(path.join(root, file!), 'utf8');
    // The name of a test, or of a line in a table of tests.
    return !source.includes(`test('${name}'`) && !source.includes(`'${name}',`);
  });
  expect(missing.map(([, file, name]) => `${file}: ${name}`)).toEqual([]);
});

test('the versions in ORMS.md are those that are installed', () => {
  const text = fs.readFileSync(path.join(root, 'docs/ORMS.md'), 'utf8');
  const packages = {
    Kysely: 'kysely',
    'Drizzle ORM': 'drizzle-orm',
    'drizzle-kit': 'drizzle-kit',
    Knex: 'knex',
    React: 'react',
    Svelte: 'svelte',
    Vue: '@vue/reactivity',
  };
  for (const [tool, name] of Object.entries(packages)) {
    const manifest = path.join(root, 'node_modules', name, 'package.json');
    const { version } = JSON.parse(fs.readFileSync(manifest, 'utf8')) as { version: string };
    expect(text).toMatch(new RegExp(`^\\| \\[?${tool}\\b.* \\| ${version}`, 'm'));
  }
});
