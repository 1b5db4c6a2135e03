/** Starts Nacre as most pages do. */

import { connect } from 'nacredb';

import { Nacre } from '../systems/nacre';
import { mark } from './mark';

void mark(connect('opfs://bench', { types: { bigint: 'number' } }).then((db) => new Nacre(db)));
