/** The pages of the documentation's site: their SQL runs, and they show what there is. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiPages, PAGES } from '../../tools/docs/api.mjs';
import { brokenLinks } from '../../tools/docs/links.mjs';
import { pages } from './extract';
import { show } from './show';
import { sqlExamples } from './sql';
import { visits } from './visits';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => fs.readFileSync(path.join(root, file), 'utf8');
const README = 'bindings/js/README.md';
/** Packages whose calls the pages about migration show, a runtime that the tests are not in, and a bucket. */
const OTHERS = ['sqlite-wasm', 'pglite', 'duckdb-wasm', 'workers', 'blobs'];
/** Sections of the README that no page includes, because a page for users says the same. */
const NOT_INCLUDED = ['nacredb'];

describe('the SQL of', () => {
  const withSql = pages(root).filter((file) => sqlExamples(read(file)).length > 0);
  test.each(withSql)('%s', async (file) => {
    await using db = await visits({ types: { bigint: 'number', date: 'string' } });
    for (const { text, table, line } of sqlExamples(read(file))) {
      const result = await db.exec(text);
      if (table !== null) {
        const rows = Array.from({ length: result.rowCount }, (_, at) =>
          result.values(at).map(asText),
        );
        const found = { columns: result.columns.map(({ name }) => name), rows };
        expect(found, `${file}:${line}`).toEqual(table);
      }
    }
  });
});

function asText(value: unknown): string {
  return value === null ? 'NULL' : show(value);
}

test('a fence of SQL is found with its table', () => {
  const page = ['```sql', 'select 1 as a;', '```', '', '| a |', '| --- |', '| 1 |', '', 'x'];
  expect(sqlExamples(page.join('\n'))).toEqual([
    { line: 2, text: 'select 1 as a;', table: { columns: ['a'], rows: [['1']] } },
  ]);
  expect(sqlExamples('```sql\nselect 1\n```\n')).toMatchObject([{ table: null }]);
});

test('fences that do not run name the package that they show', () => {
  for (const file of pages(root)) {
    const labels = [...read(file).matchAll(/^\s*```(?:ts|js|sql)[ ]+(.*)$/gm)];
    expect(
      labels.map(([, label]) => label!).filter((label) => !OTHERS.includes(label)),
      file,
    ).toEqual([]);
  }
});

test('each section of the README is on one page', () => {
  const sections = [...read(README).matchAll(/^##? (.*)$/gm)].map(([, heading]) =>
    anchor(heading!),
  );
  const included = pages(root).flatMap((file) =>
    [...read(file).matchAll(/<!--@include: [./]*bindings\/js\/README\.md#(.*)-->/g)].map(
      ([, name]) => name!,
    ),
  );
  expect(included.sort()).toEqual(sections.filter((name) => !NOT_INCLUDED.includes(name)).sort());
});

function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{Alphabetic}\p{Number} _-]/gu, '')
    .replaceAll(' ', '-');
}

test('the reference has every export, with its text', () => {
  const all = apiPages(root);
  expect(all.size).toBe(PAGES.length);
  expect(all.get('queries.md')).toContain('### query\n\n```ts\nquery<R = Row>(sql: SqlQuery');
  expect(all.get('connect.md')).toContain(
    "| `durability?` | `'strict' \\| 'relaxed' \\| 'blob'` |",
  );
  for (const [name, text] of all) {
    expect(text, name).not.toMatch(/@(example|returns|default|internal)\b/);
  }
});

test('links to no page or heading of the built site are found', () => {
  const site = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-site-'));
  const links = ['b.html#there', 'b.html#gone', 'c.html', '/docs/', '/other/', '#here', 'icon.svg'];
  const body = links.map((href) => `<a class="x" href="${href}">x</a>`).join('');
  fs.writeFileSync(path.join(site, 'index.html'), `<h1 id="here"></h1>${body}`);
  fs.writeFileSync(
    path.join(site, 'b.html'),
    '<h1 id="there"></h1><img src="https://x.org/y.png">',
  );
  expect(brokenLinks(site, '/docs/')).toEqual([
    'index.html: /docs/b.html#gone',
    'index.html: /docs/c.html',
    'index.html: /other/',
    'index.html: /docs/icon.svg',
  ]);
  fs.rmSync(site, { recursive: true });
});
