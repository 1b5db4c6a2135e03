// The rows of PROFILE as a plan: operators with their own time, which is an operator's time without
// that of the operators below it.

import type { StatementResult } from '../database/types';

export interface PlanNode {
  depth: number;
  /** The first word of its line, such as `Scan`. */
  operator: string;
  detail: string;
  /** Rows that it produced; undefined if it never ran. */
  rows?: number;
  /** Microseconds with everything below it. */
  totalUs: number;
  ownUs: number;
  /** What a scan read: names and numbers. */
  access: [string, string][];
  filters?: string;
}

const COLUMNS = ['plan', 'rows', 'time_us', 'access', 'filters'];

/** Whether a result is that of PROFILE. */
export const isProfile = ({ columns }: StatementResult): boolean =>
  columns.length === COLUMNS.length && columns.every(({ name }, at) => name === COLUMNS[at]);

/** The operators, from the top of the plan to its leaves. */
export function planNodes({ rows }: StatementResult): PlanNode[] {
  const nodes = rows.map(([plan, count, us, access, filters]): PlanNode => {
    const line = String(plan);
    const text = line.trimStart();
    const space = text.indexOf(' ');
    const totalUs = Number(us ?? 0);
    return {
      depth: (line.length - text.length) / 2,
      operator: space < 0 ? text : text.slice(0, space),
      detail: space < 0 ? '' : text.slice(space + 1),
      rows: count === null ? undefined : Number(count),
      totalUs,
      ownUs: totalUs,
      access: pairs(access),
      filters: filters === null ? undefined : String(filters),
    };
  });
  nodes.forEach((node, at) => {
    const parent = nodes.slice(0, at).findLast(({ depth }) => depth === node.depth - 1);
    if (parent) parent.ownUs -= node.totalUs;
  });
  // A part that two operators share is measured where it runs, which may be outside the one above.
  return nodes.map((node) => ({ ...node, ownUs: Math.max(0, node.ownUs) }));
}

function pairs(access: unknown): [string, string][] {
  if (access === null || access === undefined) return [];
  return String(access)
    .split(' ')
    .map((part): [string, string] => {
      const [name = '', value = ''] = part.split('=');
      return [name.replaceAll('_', ' '), value];
    });
}
