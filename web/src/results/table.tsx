// A result as a table that draws only the visible rows: rows have a fixed height, with a spacer
// above and below them.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { StatementResult, Column } from '../database/types';
import { plural } from '../ui/format';
import { isNumeric, toText } from './value';

const ROW_HEIGHT = 30;
const MARGIN_ROWS = 12;
const SAMPLE_ROWS = 200;
const MAX_CHARACTERS = 46;
/** Limit of a single column, and of a plan, which is hard to read if truncated. */
const MAX_CHARACTERS_ALONE = 1000;
/** Horizontal padding of a cell and its border, in pixels. */
const PADDING = 29;

/** Width of each column in characters, from its header and the first rows. */
function widths({ columns, rows }: StatementResult): number[] {
  return columns.map((column, index) => {
    let longest = Math.max(column.name.length, column.type.length * 0.86);
    for (const row of rows.slice(0, SAMPLE_ROWS)) {
      const value = row[index];
      if (value != null) longest = Math.max(longest, toText(value, column.type).length);
    }
    return Math.min(longest, limitOf(columns, index));
  });
}

function limitOf(columns: Column[], index: number): number {
  return columns.length === 1 || columns[index]!.name === 'plan'
    ? MAX_CHARACTERS_ALONE
    : MAX_CHARACTERS;
}

export function ResultTable({ answer }: { answer: StatementResult }) {
  const frame = useRef<HTMLDivElement>(null);
  const [window, setWindow] = useState({ first: 0, last: 60 });
  const ch = useMemo(() => widths(answer), [answer]);
  const { columns, rows } = answer;
  const total = ch.reduce((sum, width) => sum + width, 0);

  const look = () => {
    if (!frame.current) return;
    const { scrollTop, clientHeight } = frame.current;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - MARGIN_ROWS);
    const last = Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + MARGIN_ROWS;
    setWindow((now) => (now.first === first && now.last === last ? now : { first, last }));
  };

  useEffect(() => {
    frame.current!.scrollTo({ top: 0, left: 0 });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, [answer]);

  const first = Math.min(window.first, rows.length);
  const last = Math.min(window.last, rows.length);

  return (
    <div
      class="table-frame"
      ref={frame}
      onScroll={look}
      tabIndex={0}
      role="region"
      aria-label={`Result, ${plural(rows.length, 'row')}`}
    >
      <table
        aria-rowcount={rows.length + 1}
        style={{ minWidth: `calc(${total}ch + ${ch.length * PADDING}px)` }}
      >
        <colgroup>
          {ch.map((width, index) => (
            <col key={index} style={{ width: `calc(${width}ch + ${PADDING}px)` }} />
          ))}
          {/* Fills the width that the columns leave. */}
          <col />
        </colgroup>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} scope="col" class={isNumeric(column) ? 'number' : undefined}>
                <span>{column.name}</span>
                <small>{column.type.toLowerCase()}</small>
              </th>
            ))}
            <td aria-hidden="true" />
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr class="spacer" style={{ height: `${first * ROW_HEIGHT}px` }} aria-hidden="true" />
          )}
          {rows.slice(first, last).map((row, index) => (
            <tr key={first + index} aria-rowindex={first + index + 2}>
              {columns.map((column, at) => (
                <Cell
                  key={at}
                  value={row[at]}
                  type={column.type}
                  number={isNumeric(column)}
                  limit={limitOf(columns, at)}
                />
              ))}
              <td aria-hidden="true" />
            </tr>
          ))}
          {last < rows.length && (
            <tr
              class="spacer"
              style={{ height: `${(rows.length - last) * ROW_HEIGHT}px` }}
              aria-hidden="true"
            />
          )}
        </tbody>
      </table>
    </div>
  );
}

interface CellProps {
  value: unknown;
  type: string;
  number: boolean;
  limit: number;
}

function Cell({ value, type, number, limit }: CellProps) {
  if (value == null) return <td class={number ? 'null number' : 'null'}>null</td>;
  const text = toText(value, type);
  return (
    <td class={number ? 'number' : undefined} title={text.length > limit ? text : undefined}>
      {text}
    </td>
  );
}
