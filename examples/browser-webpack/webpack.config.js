// webpack 5 finds the package's worker and WebAssembly files by itself: nothing here is for nacredb.

import { copyFileSync, mkdirSync } from 'node:fs';

const dist = new URL('./dist/', import.meta.url);
mkdirSync(dist, { recursive: true });
copyFileSync(new URL('./index.html', import.meta.url), new URL('./index.html', dist));

export default {
  mode: 'production',
  entry: './src/main.js',
  output: { filename: 'main.js' },
};
