/**
 * Writes a CSV file of synthetic bicycle trips in an invented town:
 * `node ./make-data.mjs FILE [ROWS]`. The same arguments make the same file.
 */

import * as fs from 'node:fs';

const [file = 'trips.csv', rows = '20000'] = process.argv.slice(2);
const STATIONS = ['Harbour', 'Market', 'Old Mill', 'Observatory', 'Station', 'Park', 'Library'];
const FIRST_DAY = Date.UTC(2026, 4, 1);
const DAYS = 92;
const MINUTE = 60_000;

/** A small linear congruential generator (Numerical Recipes' constants): numbers from 0 up to 1. */
let state = 20261123;
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
}

/** Low numbers are likelier, so that stations differ. */
const station = () => STATIONS[Math.floor(random() ** 1.6 * STATIONS.length)];

/** Most trips begin around 8:00 and 17:00. */
function minuteOfDay() {
  const peak = random() < 0.45 ? 8 : 17;
  const spread = (random() + random() + random() - 1.5) * 3;
  return Math.min(1439, Math.max(0, Math.round((peak + spread) * 60)));
}

const text = (time) => new Date(time).toISOString().slice(0, 19).replace('T', ' ');
const lines = ['id,started,ended,from_station,to_station,member,fare'];
for (let id = 1; id <= Number(rows); id++) {
  // More trips every week.
  const day = Math.floor(Math.sqrt(random()) * DAYS);
  const started = FIRST_DAY + day * 24 * 60 * MINUTE + minuteOfDay() * MINUTE;
  const minutes = 4 + Math.floor(random() ** 2 * 55);
  const member = random() < 0.6;
  const fare = member ? 0 : 1 + Math.ceil(minutes / 15) * 0.75;
  lines.push(
    [
      id,
      text(started),
      text(started + minutes * MINUTE),
      station(),
      station(),
      member,
      fare.toFixed(2),
    ].join(),
  );
}
fs.writeFileSync(file, `${lines.join('\n')}\n`);
console.log(`${rows} trips in ${file}`);
