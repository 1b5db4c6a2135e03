import { eq } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { genre } from './schema.js';
import { withBooks } from './testing.js';

test('commits, rolls back when the function throws, and by rollback()', async () => {
  const db = await withBooks();
  const id = await db.transaction(async (tx) => {
    const [added] = await tx.insert(genre).values({ label: 'sky' }).returning();
    expect(await db.$count(genre)).toBe(2);
    expect(await tx.$count(genre)).toBe(3);
    return added!.id;
  });
  expect(id).toBe(3);
  await expect(
    db.transaction(async (tx) => {
      await tx.delete(genre);
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await expect(
    db.transaction(async (tx) => {
      await tx.delete(genre);
      tx.rollback();
    }),
  ).rejects.toMatchObject({ name: 'DrizzleError', message: 'Rollback' });
  expect(await db.$count(genre)).toBe(3);
});

test('a transaction inside another is a savepoint', async () => {
  const db = await withBooks();
  await db.transaction(async (tx) => {
    await tx.insert(genre).values({ label: 'outer' });
    const inner = tx.transaction(async (nested) => {
      await nested.insert(genre).values({ label: 'inner' });
      await nested.transaction((deeper) => deeper.insert(genre).values({ label: 'deeper' }));
      expect(await nested.$count(genre)).toBe(5);
      throw new Error('inner');
    });
    await expect(inner).rejects.toThrow('inner');
    await tx.transaction((nested) => nested.insert(genre).values({ label: 'kept' }));
    expect(await tx.query.genre.findMany({ columns: { label: true } })).toHaveLength(4);
  });
  const labels = (await db.select().from(genre).orderBy(genre.label)).map(({ label }) => label);
  expect(labels).toEqual(['kept', 'maths', 'outer', 'sea']);
});

test('conflicts are errors that say so', async () => {
  const db = await withBooks();
  const change = (label: string, meanwhile: Promise<unknown>) =>
    db.transaction(async (tx) => {
      await tx.select().from(genre);
      await meanwhile;
      await tx.update(genre).set({ label }).where(eq(genre.id, 1));
    });
  const first = change('first', Promise.resolve());
  const second = change('second', first);
  await first;
  await expect(second).rejects.toMatchObject({ cause: { kind: 'conflict', retryable: true } });
});

test('levels up to repeatable read are accepted, others refused', async () => {
  const db = await withBooks();
  const n = await db.transaction((tx) => tx.$count(genre), { isolationLevel: 'repeatable read' });
  expect(n).toBe(2);
  await expect(db.transaction(async () => {}, { isolationLevel: 'serializable' })).rejects.toThrow(
    'serializable is not supported',
  );
  await expect(db.transaction(async () => {}, { accessMode: 'read only' })).rejects.toThrow(
    'read only is not supported',
  );
});

test('locks rows with for update', async () => {
  const db = await withBooks();
  const locked = await db.transaction((tx) =>
    tx.select().from(genre).where(eq(genre.id, 1)).for('update'),
  );
  expect(locked).toEqual([{ id: 1, label: 'maths' }]);
});
