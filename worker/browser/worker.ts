/**
 * The dedicated worker of a page: it runs the engine on the database's files and answers the page's
 * calls.
 */

import { Opening } from '../shared/opening.js';
import { serve, type ServerPort } from '../shared/server.js';
import { open } from './open.js';

// TypeScript knows either pages or workers in one project, so the worker's global scope needs a
// cast.
serve(globalThis as unknown as ServerPort, new Opening(open));
