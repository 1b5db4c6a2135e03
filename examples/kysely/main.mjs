/**
 * The pantry on the command line:
 *
 *     node ./main.mjs FOLDER put flour 3
 *     node ./main.mjs FOLDER take flour 1
 *     node ./main.mjs FOLDER
 */

import { openPantry } from './pantry.mjs';

const [folder = './pantry', command, name, amount] = process.argv.slice(2);
const pantry = await openPantry(folder);
pantry.migrated.forEach((migration) => console.log(`migrated ${migration}`));
if (command === 'put') {
  console.log(`${name}: ${await pantry.put(name, Number(amount))}`);
} else if (command === 'take') {
  const left = await pantry.take(name, Number(amount));
  console.log(left === undefined ? `not enough ${name}` : `${name}: ${left}`);
} else {
  for (const item of await pantry.report()) {
    console.log(`${item.name}: ${item.amount}, ${item.changes} changes`);
  }
}
await pantry.close();
