/**
 * Finds the examples of the npm package's documentation: the fences marked `ts` or `js` in TSDoc
 * comments, READMEs and the pages of the site, and the fences marked `sql` in those pages.
 *
 * An example is the body of a module. What it uses without declaring is supplied: the package's
 * exports, and `db`, an open database with the rows that the documentation of `Database` shows. A
 * comment behind `console.log(…)` is what the call prints. A fence with the name of another package,
 * such as `js pglite`, shows that package's calls and does not run, and one marked `blobs` needs a bucket.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';

/** Where an example can run: its database's URL decides. */
export type Runtime = 'everywhere' | 'node' | 'browser';

/** One fence. */
export interface Example {
  /** File and line of its first line of code. */
  source: string;
  code: string;
  runtime: Runtime;
  /** What it prints, one entry per call of `console.log`. */
  printed: string[];
}

/** The package's exports that an example may use without importing them. */
const VALUES = ['connect', 'connectInThread', 'sql', 'NacreError'];
const TYPES = ['Database', 'Transaction', 'QueryResult', 'PreparedStatement', 'ResultStream'];

const FOLDERS = ['bindings/js/src', 'worker/shared'];
const DOCUMENTS = [
  'README.md',
  ...['js', 'kysely', 'drizzle', 'react'].map((name) => `bindings/${name}/README.md`),
];
/** Folders of the site's pages for users. */
const PAGES = ['docs', 'docs/tasks', 'docs/migrate', 'docs/reference'];

/** Every example of the documentation. */
export function examples(root: string): Example[] {
  const sources = FOLDERS.flatMap((folder) =>
    filesIn(root, folder, '.ts').filter((name) => !name.endsWith('.test.ts')),
  );
  return [...DOCUMENTS, ...pages(root), ...sources].flatMap((file) =>
    fences(file, fs.readFileSync(path.join(root, file), 'utf8')),
  );
}

/** The site's pages for users. */
export function pages(root: string): string[] {
  return PAGES.flatMap((folder) => filesIn(root, folder, '.md'));
}

function filesIn(root: string, folder: string, ending: string): string[] {
  return fs
    .readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);
}

/** The fences of a text. In TSDoc every line begins with an asterisk. */
export function fences(file: string, text: string): Example[] {
  const found: Example[] = [];
  let code: string[] | null = null;
  let first = 0;
  text.split('\n').forEach((raw, index) => {
    const line = file.endsWith('.md') ? raw : (/^\s*\* ?(.*)$/.exec(raw)?.[1] ?? '');
    if (code === null && /^\s*```(ts|js)\s*$/.test(line)) {
      code = [];
      first = index + 2;
    } else if (code !== null && /^\s*```\s*$/.test(line)) {
      found.push(example(`${file}:${first}`, code.join('\n')));
      code = null;
    } else {
      code?.push(line);
    }
  });
  return found;
}

function example(source: string, code: string): Example {
  const printed = [...code.matchAll(/^.*\bconsole\.log\(.*\);[ ]*\/\/ (.*)$/gm)];
  return { source, code, runtime: runtimeOf(code), printed: printed.map(([, text]) => text!) };
}

function runtimeOf(code: string): Runtime {
  if (/opfs:\/\/|\bdocument\./.test(code)) {
    return 'browser';
  }
  // A page cannot send a function to its worker.
  const sendsFunction = /\bcreate(Function|Aggregate)\(/.test(code) && !/\bmodule\b/.test(code);
  if (sendsFunction) {
    return 'node';
  }
  // A page has no thread that may block.
  return /connect\('\.|connectInThread\(|from 'node:/.test(code) ? 'node' : 'everywhere';
}

/** The module that runs an example. `name` keeps its files apart from those of other examples. */
export function moduleOf({ source, code }: Example, name: string): string {
  const imports = [...code.matchAll(/^import [^;]*;$/gm)].map(([text]) => text);
  const body = imports.reduce((rest, text) => rest.replace(text, ''), code).trim();
  const missing = (names: string[]) =>
    names.filter((each) => uses(body, each) && !declares(code, each));
  const needed = [...missing(VALUES), ...missing(TYPES).map((type) => `type ${type}`)];
  const withDatabase = uses(body, 'db') && !declares(code, 'db');
  return [
    `// Generated from ${source}; do not edit.`,
    ...imports,
    ...(needed.length > 0 ? [`import { ${needed.join(', ')} } from 'nacredb';`] : []),
    ...(withDatabase ? ["import { visits } from '../visits';"] : []),
    '',
    "export default async function example(console: Pick<Console, 'log'>): Promise<void> {",
    '  void console;',
    ...(withDatabase ? ['  await using db = await visits();'] : []),
    body.replaceAll('opfs://app', `opfs://${name}`),
    '}',
    '',
  ].join('\n');
}

function uses(code: string, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(code);
}

function declares(code: string, name: string): boolean {
  return new RegExp(`(const|let|using|function|class) ${name}\\b|import [^;]*\\b${name}\\b`).test(
    code,
  );
}
