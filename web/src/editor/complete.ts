// Completion of column names without their table: those of tables the script mentions come first.
// (Tables, qualified columns and keywords are completed by the SQL language itself.)

import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';

/** Tables and the names of their columns. */
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
