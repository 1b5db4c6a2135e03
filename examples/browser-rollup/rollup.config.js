// Rollup leaves `new URL('./worker.js', import.meta.url)` as it is: the package looks for its
// worker, and the worker for the engine, beside the script. So the three files are copied there.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nodeResolve } from '@rollup/plugin-node-resolve';

const copied = {
  'index.html': './index.html',
  'worker.js': import.meta.resolve('nacredb/worker'),
  'nacre_bg.wasm': import.meta.resolve('nacredb/nacre_bg.wasm'),
  'nacre_more.wasm': import.meta.resolve('nacredb/nacre_more.wasm'),
};

const copy = {
  name: 'copy',
  generateBundle() {
    for (const [fileName, from] of Object.entries(copied)) {
      const source = readFileSync(fileURLToPath(new URL(from, import.meta.url)));
      this.emitFile({ type: 'asset', fileName, source });
    }
  },
};

export default {
  input: 'src/main.js',
  output: { dir: 'dist', format: 'es' },
  plugins: [nodeResolve({ browser: true }), copy],
};
