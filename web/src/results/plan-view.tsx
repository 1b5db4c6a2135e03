// A measured plan, drawn: each operator with its rows, its own time, and what it read.

import type { StatementResult } from '../database/types';
import { formatCount, formatMs, formatShare, plural } from '../ui/format';
import { planNodes, type PlanNode } from './plan';

export function PlanView({ answer }: { answer: StatementResult }) {
  const nodes = planNodes(answer);
  const all = nodes.reduce((sum, { ownUs }) => sum + ownUs, 0);
  const most = Math.max(1, ...nodes.map(({ ownUs }) => ownUs));
  return (
    <div class="plan" role="region" aria-label="Plan with times" tabIndex={0}>
      <ol>
        {nodes.map((node, index) => (
          <Operator key={index} node={node} all={all} most={most} />
        ))}
      </ol>
    </div>
  );
}

function Operator({ node, all, most }: { node: PlanNode; all: number; most: number }) {
  const { depth, operator, detail, rows, ownUs, access, filters } = node;
  const hot = ownUs === most && all > 0;
  return (
    <li class={hot ? 'operator hot' : 'operator'} style={{ '--depth': depth }}>
      <div class="operator-name">
        <strong>{operator}</strong> <code>{detail}</code>
        {access.length > 0 && (
          <p class="numeric" title={filters}>
            {access.map(([name, value]) => `${name} ${number(value)}`).join(' · ')}
          </p>
        )}
      </div>
      <p class="operator-rows numeric">{rows === undefined ? 'not run' : plural(rows, 'row')}</p>
      <p class="operator-time numeric">
        <span>{formatMs(ownUs / 1000)}</span>
        <small>{formatShare(ownUs, all)}</small>
        <i style={{ '--share': ownUs / most }} aria-hidden="true" />
      </p>
    </li>
  );
}

const number = (text: string): string => (/^\d+$/.test(text) ? formatCount(Number(text)) : text);
