/**
 * The dedicated worker of a page: it runs the engine on the database's files and answers the calls of
 * the page, and of other tabs while the page leads.
 */

import { Leading } from '../shared/leading.js';
import { Opening } from '../shared/opening.js';
import { serve, type ServerPort } from '../shared/server.js';
import { browserMedium } from '../shared/tabs.js';
import { open } from './open.js';

const opening = new Opening(async (request) => {
  const connection = await open(request);
  const { url, term, options } = request;
  const { durability = 'strict' } = options;
  return term === undefined
    ? connection
    : new Leading(connection, { url, term, durability }, browserMedium());
});

// TypeScript knows either pages or workers in one project, so the worker's global scope needs a
// cast.
const port = globalThis as unknown as ServerPort;
serve(port, opening);
// No replies yet: tells the page that this is the worker that it expects.
port.postMessage([], []);
