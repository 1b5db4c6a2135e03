/** `npm test` starts in a fresh clone, where no package is installed yet. */

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

test('npm test loads before any package is installed', () => {
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-clone-'));
  try {
    fs.cpSync(path.join(root, 'tools'), path.join(clone, 'tools'), { recursive: true });
    const script = path.join(clone, 'tools/test.mjs');
    const ran = spawnSync('node', [script, '--only', 'nothing'], { encoding: 'utf8' });
    expect(ran.stderr).toBe('--only takes one of lint, rust, node, browser\n');
    expect(ran.status).toBe(2);
  } finally {
    fs.rmSync(clone, { recursive: true });
  }
});
