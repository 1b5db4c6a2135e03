// A button that puts text on the clipboard and says that it did.

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
      // Without permission nothing was copied, and the label keeps saying so.
    }
  };

  return (
    <button class="button" type="button" onClick={copy}>
      <Icon name={copied ? 'check' : icon} />
      <span aria-live="polite">{copied ? 'Copied' : label}</span>
    </button>
  );
}
