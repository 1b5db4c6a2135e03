/** Starts DuckDB-Wasm, with its own worker's script. */

import { openDuckdb } from '../systems/duckdb';
import { mark } from './mark';

void mark(openDuckdb('./duckdb-browser-eh.worker.js'));
