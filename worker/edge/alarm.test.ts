import { expect, test } from 'vitest';
import { Alarm } from './alarm.js';

/** An alarm, and how often it was set. */
function counted(): { alarm: Alarm; times: () => number } {
  let times = 0;
  const setAlarm = async (): Promise<void> => void times++;
  return { alarm: new Alarm({ setAlarm }), times: () => times };
}

const done = async (): Promise<void> => {};

test('an alarm is set by the first write, until it rings', async () => {
  const { alarm, times } = counted();
  alarm.wrote();
  alarm.wrote();
  expect(times()).toBe(1);
  await alarm.ring(
    async () => alarm.wrote(),
    async () => false,
  );
  expect(times()).toBe(1);
  alarm.wrote();
  expect(times()).toBe(2);
});

test('an alarm rings again if something is left', async () => {
  const { alarm, times } = counted();
  await alarm.ring(done, async () => true);
  expect(times()).toBe(1);
});

test('an alarm rings again if something was written while it looked what is left', async () => {
  const { alarm, times } = counted();
  await alarm.ring(done, async () => {
    await Promise.resolve();
    alarm.wrote();
    return false;
  });
  expect(times()).toBe(1);
});

test('an alarm that fails rings again', async () => {
  const { alarm, times } = counted();
  const fail = async (): Promise<void> => {
    throw new Error('away');
  };
  await expect(alarm.ring(fail, async () => false)).rejects.toThrow('away');
  expect(times()).toBe(1);
});

test('storage without alarms is refused', () => {
  expect(() => new Alarm({})).toThrow('sets no alarms');
});
