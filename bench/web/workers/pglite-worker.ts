/** PGlite's worker. */

import './memory';
import { PGlite } from '@electric-sql/pglite';
import { worker } from '@electric-sql/pglite/worker';

await worker({ init: ({ dataDir }) => PGlite.create({ dataDir }) });
