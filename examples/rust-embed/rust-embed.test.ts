import { expect, test } from 'vitest';
import { cargoBinary, emptyFolder, run } from '../testing.js';

test('readings are recorded, continued, reported and found by key', async () => {
  const program = await cargoBinary('nacre-example-embed');
  const folder = emptyFolder();
  const embed = (...args: string[]) => run(program, args);
  expect(await embed('record', folder, '6')).toBe('960 readings, 960 in all\n');
  expect(await embed('record', folder, '2')).toBe('320 readings, 1280 in all\n');
  const [head, ...hours] = (await embed('report', folder)).trim().split('\n');
  expect(head).toMatch(/^hour .* kWh {2}peak meter$/);
  expect(hours).toHaveLength(8);
  expect(hours[0]).toMatch(/^2026-06-01 07:00:00 +\d+\.\d +\d+ █+$/);
  expect(await embed('latest', folder, '7')).toMatch(/^meter 7: \d+ W at 2026-06-01 07:45:00\n$/);
  expect(await embed('latest', folder, '99')).toBe('meter 99 has no reading\n');
  await expect(embed('forget', folder)).rejects.toThrow(/exited with 2[^]*usage:/);
});
