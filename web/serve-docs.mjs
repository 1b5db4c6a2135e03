/** A plugin for Vite: the documentation's site at `/docs/`, beside the demo, once it is built. */

import * as path from 'node:path';
import { serveFolder } from '../tools/serve-folder.mjs';

const SITE = path.resolve(import.meta.dirname, '../docs/.vitepress/dist');

/** The plugin. `npm run docs` builds the site, and `npm start` does so too. */
export function serveDocs() {
  const use = ({ middlewares }) => void middlewares.use(serveFolder(SITE, '/docs/'));
  return { name: 'serve-docs', configureServer: use, configurePreviewServer: use };
}
