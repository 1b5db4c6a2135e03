// Serves and builds the demo with Preact's JSX, module workers, and no inlined assets.

import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // The package finds its worker relative to its own URL, which bundling it as a dependency would
  // change.
  optimizeDeps: { exclude: ['nacredb'] },
  worker: { format: 'es' },
  build: { target: 'es2023', assetsInlineLimit: 0 },
});
