// Readings of sensors in a folder: each run adds some, and prints what all of them say.

import { connect } from 'nacredb';

const db = await connect(process.argv[2] ?? './readings');
await db.exec(`
  create table if not exists reading (
    id bigint auto_increment primary key, sensor int, celsius double
  )
`);

await db.transaction(async (tx) => {
  for (let sensor = 1; sensor <= 3; sensor++) {
    await tx.query('insert into reading (sensor, celsius) values (?, ?)', [sensor, 18 + sensor]);
  }
});

const { rows } = await db.query(`
  select sensor, count(*) as readings, avg(celsius) as mean
  from reading group by sensor order by sensor
`);
for (const { sensor, readings, mean } of rows) {
  console.log(`sensor ${sensor}: ${readings} readings, ${mean.toFixed(1)} °C`);
}
await db.close();
