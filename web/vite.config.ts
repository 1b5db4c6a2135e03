// Serves and builds the demo with Preact's JSX, module workers, and no inlined assets. Two pages: the
// console and the comparison. The servers have the documentation too.

import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vite';
import { serveDocs } from './serve-docs.mjs';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  base: './',
  plugins: [serveDocs()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  resolve: {
    // DuckDB-Wasm has a build for use inside a worker, but does not export it.
    alias: {
      'duckdb-blocking': here(
        '../node_modules/@duckdb/duckdb-wasm/dist/duckdb-browser-blocking.mjs',
      ),
    },
  },
  // These packages find their workers and WebAssembly files relative to their own URL, which bundling
  // them as dependencies would change.
  optimizeDeps: { exclude: ['nacredb', '@sqlite.org/sqlite-wasm', '@electric-sql/pglite'] },
  worker: { format: 'es' },
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    rolldownOptions: { input: [here('index.html'), here('against.html')] },
  },
});
