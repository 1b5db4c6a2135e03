/**
 * The reading list on the command line:
 *
 *     node ./main.mjs FOLDER add 'A title' 'An author'
 *     node ./main.mjs FOLDER read 'A title' 2026-11-20 4
 *     node ./main.mjs FOLDER
 */

import { openBooks } from './books.mjs';

const [folder = './books', command, ...rest] = process.argv.slice(2);
const books = await openBooks(folder);
try {
  if (command === 'add') {
    console.log(`book ${await books.add(...rest)}`);
  } else if (command === 'read') {
    const [title, day, stars] = rest;
    await books.read(title, day, Number(stars));
  } else {
    for (const { author, readings, stars } of await books.authors()) {
      console.log(`${author}: ${readings} readings, ${stars ?? 'no'} stars`);
    }
  }
} finally {
  await books.close();
}
