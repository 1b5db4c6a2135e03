/** Types of `sim-edge.mjs` for the tests. */

export interface Outcome {
  seed: number;
  failure: string | null;
  counts: Record<string, number>;
  story: string[];
}

export const PLANTS: string[];

export function simulateEdge(settings: {
  seeds?: number;
  from?: number;
  jobs?: number;
  plant?: string;
}): Promise<{ seeds: number; counts: Record<string, number>; failed: Outcome[] }>;

export function replayEdge(seed: number): Promise<Outcome>;

export function prepareEdge(folder: string): {
  script: string;
  files: { first: string; more: string };
};
