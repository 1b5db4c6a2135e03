// Copies the page and the package to `dist`, with the hash of each file that browsers can check
// (Subresource Integrity), and writes the headers that the server has to send.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const hash = (algorithm, data) =>
  `${algorithm}-${createHash(algorithm).update(data).digest('base64')}`;

const from = new URL('./', import.meta.resolve('nacredb/worker'));
fs.mkdirSync('dist/nacredb', { recursive: true });
for (const name of ['index.js', 'worker.js', 'nacre_bg.wasm', 'nacre_more.wasm']) {
  fs.copyFileSync(fileURLToPath(new URL(name, from)), `dist/nacredb/${name}`);
}
fs.copyFileSync('main.js', 'dist/main.js');

const integrity = (file) => hash('sha384', fs.readFileSync(`dist/${file}`));
const importMap = JSON.stringify({
  imports: { nacredb: './nacredb/index.js' },
  integrity: { './nacredb/index.js': integrity('nacredb/index.js') },
});
const page = fs
  .readFileSync('index.html', 'utf8')
  .replace(/(<script type="importmap">)[^<]*/, `$1${importMap}`)
  .replace(/src="\.\/main\.js"/, `$& integrity="${integrity('main.js')}"`)
  .replace(
    /data-engine="[^"]*"/,
    `$& data-engine-integrity="${integrity('nacredb/nacre_bg.wasm')}"`,
  );
fs.writeFileSync('dist/index.html', page);

// Sent with every file: a worker's script brings the policy of its worker.
const policy = [
  "default-src 'none'",
  // The engine is WebAssembly; the import map is a script in the page.
  `script-src 'self' 'wasm-unsafe-eval' '${hash('sha256', importMap)}'`,
  "worker-src 'self'",
  // The worker fetches the engine.
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
];
const headers = {
  'content-security-policy': policy.join('; '),
  'x-content-type-options': 'nosniff',
};
fs.writeFileSync('dist/headers.json', JSON.stringify(headers, null, 2));
