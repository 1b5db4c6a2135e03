/**
 * Finds the fences marked `sql` in a page. The Markdown table behind one, if there is one, is the
 * result of its last statement.
 */

/** One fence. */
export interface SqlExample {
  /** Line of its first statement, from 1. */
  line: number;
  text: string;
  /** The result: names of columns, and rows as text. */
  table: { columns: string[]; rows: string[][] } | null;
}

/** The fences of a page, in order. */
export function sqlExamples(page: string): SqlExample[] {
  const lines = page.split('\n');
  return lines.flatMap((line, at) => {
    if (line !== '```sql') {
      return [];
    }
    const end = lines.indexOf('```', at);
    const text = lines.slice(at + 1, end).join('\n');
    return [{ line: at + 2, text, table: tableIn(lines.slice(end + 1)) }];
  });
}

/** The table with which the lines begin, after an empty one. */
function tableIn(lines: string[]): SqlExample['table'] {
  const start = lines[0] === '' ? 1 : 0;
  const end = lines.findIndex((line, at) => at >= start && !line.startsWith('|'));
  const [head, , ...rows] = lines.slice(start, end === -1 ? undefined : end).map(cells);
  return head === undefined ? null : { columns: head, rows };
}

function cells(line: string): string[] {
  return line
    .replace(/^\| ?| ?\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}
