// Serves and builds the demo with Preact's JSX, module workers, and no inlined assets. The servers
// have the documentation too.

import { defineConfig } from 'vite';
import { serveDocs } from './serve-docs.mjs';

export default defineConfig({
  base: './',
  plugins: [serveDocs()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // The package finds its worker relative to its own URL, which bundling it as a dependency would
  // change.
  optimizeDeps: { exclude: ['nacredb'] },
  worker: { format: 'es' },
  build: { target: 'es2023', assetsInlineLimit: 0 },
});
