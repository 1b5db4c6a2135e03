/** What an object holds in the engine when it leaves memory. */

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { prepareEdge } from '../../tools/sim-edge.mjs';

test('databases that are never closed are released', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-left-'));
  try {
    const { script, files } = prepareEdge(folder);
    const program = fileURLToPath(new URL('./left.mjs', import.meta.url));
    const args = ['--expose-gc', program, script, files.first, files.more];
    const released = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    expect(released).toBeGreaterThan(190);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
