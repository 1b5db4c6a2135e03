/** Starts PGlite. */

import { openPglite } from '../systems/pglite';
import { mark } from './mark';

void mark(openPglite());
