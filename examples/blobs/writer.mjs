// Measures the weather at some stations, and keeps it in a folder and in a bucket: `node writer.mjs FOLDER [ROUNDS]`.
// Without the folder another run goes on with what the bucket has.

import { connect } from 'nacredb';
import { access, url } from './store.mjs';

const [folder = './weather', rounds = '60'] = process.argv.slice(2);
const STATIONS = ['cape', 'reef', 'sound'];

const db = await connect(folder, {
  blobs: { url, ...access },
  // What is older than the newest 100 MB stays in the bucket only, and is fetched when it is read.
  diskLimit: 100_000_000,
  // Readers see a measurement half a second later.
  blobLag: 500,
});
await db.exec(`create table if not exists measurement (
  station varchar(20), at timestamp, degrees double, primary key (station, at))`);

for (let round = 0; round < Number(rounds); round++) {
  const at = new Date();
  const degrees = STATIONS.map((_, station) => 12 + 3 * station + Math.sin(at.getTime() / 60_000));
  // A round is one commit: no reader sees a part of it.
  await db.insertRows('measurement', { station: STATIONS, at: STATIONS.map(() => at), degrees });
  await new Promise((resolve) => setTimeout(resolve, 100));
}
// Closing uploads what is left.
await db.close();
const { rows } = await countAgain();
console.log(`${rows[0].n} measurements are in the bucket`);

/** Counts what the bucket has. */
async function countAgain() {
  const bucket = await connect(url, { blobs: access });
  try {
    return await bucket.query('select count(*) as n from measurement');
  } finally {
    await bucket.close();
  }
}
