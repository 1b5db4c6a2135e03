// Temperatures of a million readings, summed up in another thread while this one stays responsive.
// `node main.mjs [FOLDER] [READINGS]`

import { ThreadedDatabase } from './threaded.mjs';

const folder = process.argv[2] ?? './readings';
const count = Number(process.argv[3] ?? 1_000_000);
const SENSORS = 8;

const db = new ThreadedDatabase(folder);
await db.exec(`
  create table if not exists reading (id bigint primary key, sensor int, celsius double)
`);

/** The longest time that this thread could not run, in milliseconds. */
let pause = 0;
let last = performance.now();
const ticking = setInterval(() => {
  const now = performance.now();
  pause = Math.max(pause, now - last);
  last = now;
}, 5);

const id = Array.from({ length: count }, (_, i) => i);
await db.insertRows(
  'reading',
  {
    id,
    sensor: id.map((i) => i % SENSORS),
    celsius: id.map((i) => 15 + (i % SENSORS) + Math.sin(i / 100)),
  },
  { onDuplicate: 'skip' },
);

// The copies of the rows were made here; from now on only the other thread works.
pause = 0;
last = performance.now();
const rows = await db.query(`
  select sensor, count(*) as readings, avg(celsius) as mean
  from reading group by sensor order by sensor
`);
const longest = pause;
clearInterval(ticking);
for (const { sensor, readings, mean } of rows) {
  console.log(`sensor ${sensor}: ${readings} readings, ${mean.toFixed(1)} °C`);
}
console.log(`longest pause of the main thread: ${longest.toFixed(0)} ms`);
await db.close();
