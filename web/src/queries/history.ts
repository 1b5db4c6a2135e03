// The scripts run in this browser, newest first, without duplicates.

import { signal } from '@preact/signals';

import { keep, recall } from '../ui/remember';

const KEY = 'nacre.history';
const LIMIT = 60;

function stored(): string[] {
  try {
    const value: unknown = JSON.parse(recall(KEY) ?? '[]');
    return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
  } catch {
    return [];
  }
}

export const history = signal<string[]>(stored());

export function remember(script: string): void {
  const text = script.trim();
  if (!text) return;
  save([text, ...history.value.filter((entry) => entry !== text)].slice(0, LIMIT));
}

export const forget = (): void => save([]);

function save(entries: string[]): void {
  history.value = entries;
  keep(KEY, JSON.stringify(entries));
}
