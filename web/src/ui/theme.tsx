// The theme: light, dark, or the system's, remembered. `index.html` applies it before the first
// paint.

import { signal } from '@preact/signals';

import { Icon, type IconName } from './icons';
import { keep, recall } from './remember';

type Theme = 'auto' | 'light' | 'dark';

const KEY = 'nacre.theme';
const ORDER: Theme[] = ['auto', 'light', 'dark'];
const ICONS: Record<Theme, IconName> = { auto: 'auto', light: 'sun', dark: 'moon' };
const LABELS: Record<Theme, string> = { auto: 'system', light: 'light', dark: 'dark' };

const stored = recall(KEY);
const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'auto');

function next(): void {
  const now = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length]!;
  theme.value = now;
  if (now === 'auto') {
    keep(KEY, null);
    delete document.documentElement.dataset.theme;
  } else {
    keep(KEY, now);
    document.documentElement.dataset.theme = now;
  }
}

export function ThemeButton() {
  const label = `Theme: ${LABELS[theme.value]}`;
  return (
    <button class="button bare" type="button" onClick={next} aria-label={label} title={label}>
      <Icon name={ICONS[theme.value]} />
    </button>
  );
}
