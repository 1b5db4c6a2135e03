/**
 * Formats the folders of the encodings. The list in `engine/column/src/encoding/mod.rs` declares
 * their modules, and `cargo fmt` does not follow modules that a macro declares. Arguments go to
 * `rustfmt`, such as `--check`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = 'engine/column/src/encoding';
const files = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => join(folder, entry.name, 'mod.rs'))
  .filter((file) => existsSync(file));
execFileSync('rustfmt', ['--edition', '2024', ...process.argv.slice(2), ...files], {
  stdio: 'inherit',
});
