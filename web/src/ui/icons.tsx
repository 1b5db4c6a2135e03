// The demo's logo and a small set of 16 px line icons.

const PATHS = {
  run: 'M5 3.2v9.6l8-4.8z',
  stop: 'M4 4h8v8H4z',
  copy: 'M5.5 5.5v-2a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-2M3.500 5.500h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1z',
  open: 'M8 10.300V2.800M4.800 5.900 8 2.800l3.200 3.100M3 10.500v2.800h10v-2.800',
  download: 'M8 2.500v7.500M4.800 7.200 8 10.300l3.200-3.100M3 13.300h10',
  link: 'M6.700 9.300a2.600 2.600 0 0 0 3.700 0l2.300-2.300a2.600 2.600 0 1 0-3.700-3.700l-.6.6M9.300 6.700a2.600 2.600 0 0 0-3.700 0L3.300 9a2.600 2.600 0 1 0 3.700 3.700l.6-.6',
  check: 'M3.300 8.500 6.500 11.500 12.700 4.800',
  sun: 'M8 5.200a2.800 2.800 0 1 1 0 5.600 2.800 2.800 0 0 1 0-5.600zM8 1.500v1.300M8 13.200v1.300M1.500 8h1.300M13.200 8h1.300M3.400 3.400l.9.9M11.700 11.700l.9.9M3.400 12.600l.9-.9M11.700 4.300l.9-.9',
  moon: 'M13.200 9.600A5.700 5.700 0 0 1 6.400 2.800a5.700 5.700 0 1 0 6.800 6.800z',
  auto: 'M8 2.200a5.800 5.800 0 1 1 0 11.600A5.800 5.800 0 0 1 8 2.200zM8 2.200v11.600M8 5l3-1.800M8 8l5.500-2M8 11l5.200-2',
  flush:
    'M8 1.800v5.400M5.700 5 8 7.300 10.300 5M2.500 10c3.400 1.300 7.600 1.300 11 0M2.500 13c3.400 1.300 7.600 1.300 11 0',
  reset: 'M3.200 6.500A5.200 5.200 0 1 1 2.800 9M3 2.800v3.800h3.800',
  plan: 'M3 3.500h4v3H3zM9 9.500h4v3H9zM5 6.500V11h4',
  clock: 'M8 2.200a5.800 5.800 0 1 1 0 11.600A5.800 5.800 0 0 1 8 2.200zM8 4.800V8l2.300 1.600',
  warn: 'M8 2.300 14.200 13.200H1.800zM8 6.500v3.200M8 11.500v.1',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/**
 * The logo: growth rings of a shell that touch where growth began. It is animated on screens that
 * wait.
 */
export function Mark({ size = 26 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <defs>
        <linearGradient
          id="mark-sheen"
          gradientUnits="userSpaceOnUse"
          x1="3"
          y1="6"
          x2="29"
          y2="24"
        >
          <stop offset="0" stop-color="var(--rose)" />
          <stop offset="0.28" stop-color="var(--apricot)" />
          <stop offset="0.52" stop-color="var(--mint)" />
          <stop offset="0.76" stop-color="var(--sky)" />
          <stop offset="1" stop-color="var(--lilac)" />
        </linearGradient>
      </defs>
      <g fill="none" stroke="url(#mark-sheen)" stroke-width="2" transform="rotate(32 16 16)">
        {[13, 9.9, 6.8, 3.7].map((radius) => (
          <circle key={radius} cx="16" cy={29.5 - radius} r={radius} />
        ))}
      </g>
    </svg>
  );
}
