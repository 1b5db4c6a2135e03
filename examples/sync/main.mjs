/** `node ./main.mjs FOLDER [BODY]` writes a note, and lists all notes that the server knows. */

import { randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { connect } from 'nacredb';
import { Notes } from './sync.mjs';

const [folder = './notes', body] = process.argv.slice(2);
const db = await connect(folder);
const notes = await Notes.open(db, 'http://localhost:8090/', path.basename(folder));
if (body !== undefined) {
  await notes.write(randomUUID(), body);
}
const controller = new AbortController();
const running = notes.run({ signal: controller.signal, everyMs: 100 });
setTimeout(() => controller.abort(), 1_000);
await running;
console.table(await notes.list());
await db.close();
