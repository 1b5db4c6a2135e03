/** Finds links of a built site that lead to no page of it, or to no heading of a page. */

import * as fs from 'node:fs';
import * as path from 'node:path';

/**
 * @param {string} folder The built site.
 * @param {string} base The path under which it is served, with a slash at its end.
 * @returns {string[]} One line a link: the page, and where its link leads.
 */
export function brokenLinks(folder, base) {
  const files = new Set(fs.readdirSync(folder, { recursive: true }).map((name) => slashes(name)));
  const pages = [...files].filter((name) => name.endsWith('.html'));
  const texts = new Map(
    pages.map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]),
  );
  const ids = new Map([...texts].map(([name, text]) => [name, idsOf(text)]));
  return pages.flatMap((page) =>
    linksOf(texts.get(page))
      .map((href) => new URL(href, `http://site${base}${page}`))
      .filter(({ origin }) => origin === 'http://site')
      .filter(({ pathname, hash }) => {
        const name = decodeURI(pathname).replace(new RegExp(`^${base}`), '');
        const file = name === '' || name.endsWith('/') ? `${name}index.html` : name;
        const anchor = decodeURIComponent(hash.slice(1));
        const found = pathname.startsWith(base) && files.has(file);
        return !found || (anchor !== '' && !ids.get(file)?.has(anchor));
      })
      .map(({ pathname, hash }) => `${page}: ${pathname}${hash}`),
  );
}

function linksOf(text) {
  const links = [...text.matchAll(/<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]*)"/g)];
  return [...new Set(links.map(([, href]) => href.replaceAll('&amp;', '&')))];
}

function idsOf(text) {
  return new Set([...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id));
}

function slashes(name) {
  return name.split(path.sep).join('/');
}
