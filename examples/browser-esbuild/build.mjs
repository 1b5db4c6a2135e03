// esbuild leaves `new URL('./worker.js', import.meta.url)` as it is: the package looks for its
// worker, and the worker for the engine, beside the script. So the three files are copied there.

import { build } from 'esbuild';
import { copyFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

await build({
  entryPoints: ['src/main.js'],
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  // Keeps what the page never imports, `connectInThread`, out of main.js.
  splitting: true,
  minify: true,
  // Top-level await.
  target: 'es2022',
});
await build({
  entryPoints: [fileURLToPath(import.meta.resolve('nacredb/worker'))],
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  minify: true,
});
for (const name of ['nacre_bg.wasm', 'nacre_more.wasm']) {
  copyFileSync(fileURLToPath(import.meta.resolve(`nacredb/${name}`)), `dist/${name}`);
}
copyFileSync('index.html', 'dist/index.html');
