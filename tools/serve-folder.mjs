/** Serves a folder of built files below a path, as a middleware of Node's and Vite's servers. */

import * as fs from 'node:fs';
import * as path from 'node:path';

const MEDIA = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
};

/**
 * Answers requests below `base` with files of the folder, and passes other requests on. A folder
 * answers its `index.html`; what is missing answers `404.html`, if there is one.
 *
 * @param {string} folder
 * @param {string} base A path that begins and ends with a slash.
 */
export function serveFolder(folder, base) {
  return (request, response, next) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === base.slice(0, -1)) {
      response.writeHead(301, { location: base }).end();
      return;
    }
    if (!pathname.startsWith(base)) {
      next();
      return;
    }
    const found = fileOf(folder, pathname.slice(base.length));
    const file = found ?? path.join(folder, '404.html');
    fs.readFile(file, (error, bytes) => {
      const type = error ? 'text/plain' : (MEDIA[path.extname(file)] ?? 'application/octet-stream');
      response
        .writeHead(error || found === null ? 404 : 200, { 'content-type': type })
        .end(error ? 'not found' : bytes);
    });
  };
}

/** The file of a path, or null if there is none inside the folder. */
function fileOf(folder, name) {
  let file;
  try {
    file = path.join(folder, decodeURIComponent(name));
  } catch {
    return null;
  }
  const inside = path.relative(folder, file);
  if (inside.startsWith('..') || path.isAbsolute(inside) || file.includes('\0')) {
    return null;
  }
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory()) {
    return fileOf(folder, path.join(inside, 'index.html'));
  }
  return stat?.isFile() ? file : null;
}
