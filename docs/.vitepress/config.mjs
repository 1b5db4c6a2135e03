/**
 * The documentation's site: its pages are the Markdown files of this folder and the reference that
 * `tools/docs/api.mjs` writes.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { defineConfig } from 'vitepress';
import { PAGES } from '../../tools/docs/api.mjs';

const docs = path.resolve(import.meta.dirname, '..');
const base = process.env.DOCS_BASE ?? '/docs/';

/** A decision's title: `0001: The title`. */
function decisions() {
  return fs
    .readdirSync(path.join(docs, 'decisions'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => {
      const [heading] = /^# .*$/m.exec(fs.readFileSync(path.join(docs, 'decisions', name), 'utf8'));
      return { text: heading.slice(2), link: `/decisions/${name.replace('.md', '')}` };
    });
}

/** Anchors of headings as GitHub makes them, so that a link leads to the same place on both. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{Alphabetic}\p{Number} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The pages that include sections of the package's README, by the anchor of the section. */
function sectionPages() {
  const folders = ['.', 'tasks', 'migrate', 'reference'];
  const files = folders.flatMap((folder) =>
    fs
      .readdirSync(path.join(docs, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => path.posix.join(folder, name)),
  );
  return new Map(
    files.flatMap((file) =>
      [
        ...fs
          .readFileSync(path.join(docs, file), 'utf8')
          .matchAll(/@include: \S+README\.md#(\S+)-->/g),
      ].map(([, anchor]) => [`#${anchor}`, file]),
    ),
  );
}

/**
 * Links to files outside this folder, such as sources, become plain text: the site does not have
 * them. Links between sections of the README lead to the pages that include them.
 */
function linksInside(md) {
  const sections = sectionPages();
  md.core.ruler.push('links-inside', ({ tokens, env }) => {
    const folder = path.dirname(env.path ?? '');
    for (const { children } of tokens.filter(({ type }) => type === 'inline')) {
      let outside = false;
      for (const token of children) {
        const href = token.type === 'link_open' ? token.attrGet('href') : null;
        // The link that a heading has to itself stays.
        if (sections.has(href) && token.attrGet('class') === null) {
          token.attrSet('href', `/${sections.get(href)}${href}`);
        } else if (href !== null) {
          outside = /^\.\.?\//.test(href) && !path.resolve(folder, href).startsWith(docs);
        }
        if (outside && /^link_/.test(token.type)) {
          outside = token.type === 'link_open';
          Object.assign(token, { tag: 'span', attrs: [] });
        }
      }
    }
  });
}

const page = (text, link) => ({ text, link });

export default defineConfig({
  vite: { publicDir: path.resolve(docs, '../web/public') },
  title: 'Nacre',
  description: 'One table for transactions and analytics, in the browser and in Node',
  lang: 'en-GB',
  base,
  head: [['link', { rel: 'icon', href: `${base}nacre.svg` }]],
  // Numbered pages of decisions are linked with their endings, as on GitHub.
  cleanUrls: false,
  markdown: {
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    config: linksInside,
  },
  themeConfig: {
    logo: '/nacre.svg',
    outline: [2, 3],
    search: { provider: 'local' },
    externalLinkIcon: true,
    nav: [
      page('Start', '/start'),
      page('Tasks', '/tasks/sql'),
      page('SQL', '/SQL'),
      page('Reference', '/reference/api/connect'),
    ],
    sidebar: [
      {
        text: 'Start',
        items: [page('Two minutes to a working page', '/start')],
      },
      {
        text: 'Tasks',
        items: [
          page('SQL by example', '/tasks/sql'),
          page('Persist data', '/tasks/persist'),
          page('Import many rows', '/tasks/import'),
          page('Transactions and conflicts', '/tasks/transactions'),
          page('Live queries', '/tasks/live'),
          page('Large results', '/tasks/stream'),
          page('Abort and progress', '/tasks/abort'),
          page('Export a database', '/tasks/export'),
          page('Many tabs', '/tasks/tabs'),
          page('Blobs', '/tasks/blobs'),
          page('JSON documents', '/tasks/json'),
          page('Functions of your own', '/tasks/functions'),
          page('The engine in your thread', '/tasks/thread'),
          page('Durable Objects and Workers', '/tasks/edge'),
          page('Bundlers and policies', '/tasks/bundlers'),
          page('ORMs and frameworks', '/ORMS'),
          page('Limits', '/tasks/limits'),
        ],
      },
      {
        text: 'Migrate',
        items: [
          page('From sqlite-wasm', '/migrate/sqlite-wasm'),
          page('From PGlite', '/migrate/pglite'),
          page('From DuckDB-Wasm', '/migrate/duckdb-wasm'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('URLs and options', '/reference/options'),
          page('Values and the sql tag', '/reference/values'),
          page('Errors', '/reference/errors'),
          page('SQL', '/SQL'),
          page('SQL functions', '/SQL#functions'),
          {
            text: 'JavaScript API',
            collapsed: true,
            items: PAGES.map(({ name, title }) => page(title, `/reference/api/${name}`)),
          },
        ],
      },
      {
        text: 'Inside Nacre',
        collapsed: true,
        items: [
          page('Architecture', '/ARCHITECTURE'),
          page('File format', '/FORMAT'),
          page('Tiers', '/TIERS'),
          page('Testing', '/TESTING'),
          page('Contributing', '/CONTRIBUTING'),
          { text: 'Decisions', collapsed: true, items: decisions() },
        ],
      },
    ],
  },
});
