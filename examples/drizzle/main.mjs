/**
 * The running log on the command line:
 *
 *     node ./main.mjs FOLDER add Ada 2026-11-20 10.5 58
 *     node ./main.mjs FOLDER
 */

import { openLog } from './log.mjs';

const [folder = './runs', command, name, day, km, minutes] = process.argv.slice(2);
const log = await openLog(folder);
if (command === 'add') {
  await log.add(name, { day, km: Number(km), minutes: Number(minutes) });
} else {
  for (const { name, km, pace } of await log.ranking()) {
    console.log(`${name}: ${km} km at ${pace} min/km`);
  }
  for (const { name, runs } of await log.last(2)) {
    console.log(`${name}: ${runs.map(({ day, km }) => `${day} ${km} km`).join(', ')}`);
  }
}
await log.close();
