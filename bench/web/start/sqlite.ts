/** Starts SQLite with its default settings. */

import { openSqlite } from '../systems/sqlite';
import { mark } from './mark';

void mark(openSqlite(false));
