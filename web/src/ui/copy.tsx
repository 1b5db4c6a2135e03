// A button that copies text to the clipboard and confirms it.

import { useEffect, useState } from 'preact/hooks';

import { Icon, type IconName } from './icons';

export function CopyButton({
  label,
  icon,
  text,
}: {
  label: string;
  icon: IconName;
  text: () => string;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1600);
    return () => clearTimeout(timer);
  }, [copied]);

  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setCopied(true);
    } catch {
      // Without permission nothing is copied, and the label does not change.
    }
  };

  return (
    <button class="button" type="button" onClick={copy}>
      <Icon name={copied ? 'check' : icon} />
      <span aria-live="polite">{copied ? 'Copied' : label}</span>
    </button>
  );
}
