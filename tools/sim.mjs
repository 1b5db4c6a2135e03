/**
 * `npm run sim` and `npm run isolation`: builds the simulation, with planted bugs when `--plant`
 * asks for one, and runs it with the arguments given. `npm run sim -- edge` is another simulation.
 */

import { spawnSync } from 'node:child_process';
import * as path from 'node:path';
import { main, root, target } from './lib.mjs';
import { simEdge } from './sim-edge.mjs';

const [what, ...args] = process.argv.slice(2);
if (what === 'sim' && args[0] === 'edge') {
  await main(() => simEdge(args.slice(1)));
  process.exit();
}
const build = ['build', '-q', '--profile', 'sim', '-p', 'nacre-sim'];
if (args.includes('--plant')) {
  // Builds with planted bugs go to a folder of their own: nothing else may ever pick them up.
  build.push('--features', 'plant', '--target-dir', path.join(target, 'planted'));
}
const folder = args.includes('--plant') ? path.join(target, 'planted') : target;
const built = spawnSync('cargo', build, { cwd: root, stdio: 'inherit' });
if (built.status !== 0) {
  process.exit(built.status ?? 1);
}
const command = path.join(folder, 'sim', 'nacre-sim');
const ran = spawnSync(command, what === 'isolation' ? ['isolation', ...args] : args, {
  cwd: root,
  stdio: 'inherit',
});
process.exit(ran.status ?? 1);
