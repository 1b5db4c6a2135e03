// The hue of each encoding. Encodings that are not listed are pearl.

const HUES: Record<string, string> = {
  plain: 'lilac',
  constant: 'apricot',
  runlength: 'apricot',
  dictionary: 'mint',
  bitpacked: 'sky',
  delta: 'sky',
  fsst: 'rose',
  lz4: 'rose',
  onpair: 'rose',
  alp: 'mint',
};

const NEIGHBOURS: Record<string, string> = {
  rose: 'apricot',
  apricot: 'rose',
  mint: 'sky',
  sky: 'mint',
  lilac: 'rose',
  pearl: 'sky',
};

const normal = (encoding: string): string => encoding.toLowerCase().replaceAll(/[-_ ]/g, '');

export const hue = (encoding: string): string => HUES[normal(encoding)] ?? 'pearl';

/** The hue that a layer shifts to beside its highlight. */
export const neighbour = (encoding: string): string => NEIGHBOURS[hue(encoding)] ?? 'pearl';
