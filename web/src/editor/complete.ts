// Completes unqualified column names: those of tables that the script mentions come first.
// CodeMirror's SQL language completes tables, qualified columns and keywords.

import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';

/** Column names by table. */
export type Schema = Record<string, string[]>;

export function columnSource(
  schema: Schema,
): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const word = context.matchBefore(/\w+/);
    if (!word || context.state.sliceDoc(word.from - 1, word.from) === '.') return null;
    const words = new Set(context.state.doc.toString().toLowerCase().match(/\w+/g));
    const options = Object.entries(schema).flatMap(([table, columns]) =>
      columns.map((label): Completion => ({
        label,
        detail: table,
        type: 'property',
        boost: words.has(table) ? 50 : -50,
      })),
    );
    return { from: word.from, options, validFor: /^\w*$/ };
  };
}
