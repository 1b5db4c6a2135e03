// Writes `dist/notes.html`, which has everything: a page opened from a file may load nothing else.

import { build } from 'esbuild';
import * as fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const bundled = async (entry) => {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    minify: true,
    target: 'es2022',
    write: false,
  });
  return outputFiles[0].text;
};
const place = (name) => fileURLToPath(import.meta.resolve(`nacredb/${name}`));
const part = (name, data) =>
  `<script type="text/plain" id="${name}">${gzipSync(data, { level: 9 }).toString('base64')}</script>`;

const parts = [
  part('worker', await bundled(place('worker'))),
  part('first', fs.readFileSync(place('nacre_bg.wasm'))),
  part('more', fs.readFileSync(place('nacre_more.wasm'))),
  // `</script` in the text would end it.
  `<script type="module">${(await bundled('src/main.js')).replaceAll('</script', '<\\/script')}</script>`,
];
const page = fs
  .readFileSync('index.html', 'utf8')
  .replace(/<!-- build.*-->/, () => parts.join('\n'));
fs.mkdirSync('dist', { recursive: true });
fs.writeFileSync('dist/notes.html', page);
