// A static server: this folder, and the package's files under `nacredb/`. `node server.mjs [PORT]`

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const MEDIA = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  // With this type the engine is compiled while it arrives.
  '.wasm': 'application/wasm',
};
const packaged = path.dirname(fileURLToPath(import.meta.resolve('nacredb/worker')));

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  const name = path.basename(pathname) || 'index.html';
  const folder = pathname.startsWith('/nacredb/') ? packaged : import.meta.dirname;
  fs.readFile(path.join(folder, name), (error, data) => {
    const type = error ? 'text/plain' : (MEDIA[path.extname(name)] ?? 'application/octet-stream');
    response.writeHead(error ? 404 : 200, { 'content-type': type });
    response.end(error ? 'not found' : data);
  });
});

server.listen(Number(process.argv[2] ?? 8080), 'localhost', () =>
  console.log(`http://localhost:${server.address().port}/`),
);
