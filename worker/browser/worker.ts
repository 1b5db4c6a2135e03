/**
 * The dedicated worker of a page: it runs the engine on the database's files and answers the calls of
 * the page, and of other tabs while the page leads.
 */

import { askAt } from '../shared/blobs/asking.js';
import { Leading } from '../shared/leading.js';
import { Opening } from '../shared/opening.js';
import { serve, type ServerPort } from '../shared/server.js';
import { browserMedium } from '../shared/tabs.js';
import { open } from './open.js';

/** The page hands it over before its first call, if it answers questions. */
let questions: MessagePort | null = null;

const opening = new Opening(async (request) => {
  const connection = await open(request, askAt(questions));
  const { url, term, options, blobs } = request;
  const { durability = 'strict' } = options;
  return term === undefined
    ? connection
    : new Leading(
        connection,
        { url, term, durability, blobs: blobs?.url ?? null },
        browserMedium(),
      );
});

// TypeScript knows either pages or workers in one project, so the worker's global scope needs a
// cast.
const port = globalThis as unknown as ServerPort;
globalThis.addEventListener('message', ({ ports }) => {
  questions = ports[0] ?? questions;
});
serve(port, opening);
// No replies yet: tells the page that this is the worker that it expects.
port.postMessage([], []);
