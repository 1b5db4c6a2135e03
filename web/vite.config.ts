// How the demo is served and built: Preact's JSX, module workers, no inlined assets, and nothing else.

import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // The package makes its worker from its own address; rewriting it into a dependency bundle would lose that.
  optimizeDeps: { exclude: ['nacredb'] },
  worker: { format: 'es' },
  build: { target: 'es2023', assetsInlineLimit: 0 },
});
