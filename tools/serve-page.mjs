/** A page that uses the built npm package, served on this machine for a browser to open. */

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as path from 'node:path';
import { root } from './lib.mjs';

const MEDIA = { '.js': 'text/javascript', '.wasm': 'application/wasm' };

/**
 * Serves a page at `/`, the files of the package beside it, and those of a folder, if one is given,
 * under `/data/`. The server listens on a free port of localhost.
 *
 * @param {string} page
 * @param {string} [data]
 * @returns {Promise<http.Server>}
 */
export function servePage(page, data) {
  const dist = path.join(root, 'bindings/js/dist');
  const server = http.createServer((request, response) => {
    if (request.url === '/') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(page);
      return;
    }
    const name = path.basename(request.url ?? '');
    const folder = data !== undefined && request.url?.startsWith('/data/') ? data : dist;
    fs.readFile(path.join(folder, name), (error, bytes) => {
      const type = MEDIA[path.extname(name)] ?? 'text/plain';
      response
        .writeHead(error ? 404 : 200, { 'content-type': type })
        .end(error ? 'not found' : bytes);
    });
  });
  return new Promise((resolve) => server.listen(0, 'localhost', () => resolve(server)));
}
