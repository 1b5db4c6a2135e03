// Sets up the CodeMirror editor: its extensions and its keys.

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { sql } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, Prec } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';

import { columnSource, type Schema } from './complete';
import { dialect } from './dialect';
import { marks } from './marks';

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--sql-keyword)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--sql-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--sql-number)' },
  { tag: [tags.standard(tags.name), tags.typeName], color: 'var(--sql-function)' },
  {
    tag: [tags.comment, tags.lineComment, tags.blockComment],
    color: 'var(--ink-faint)',
    fontStyle: 'italic',
  },
  { tag: [tags.operator, tags.punctuation, tags.paren], color: 'var(--ink-soft)' },
]);

const language = new Compartment();

const completing = (schema: Schema) => [
  sql({ dialect, schema, upperCaseKeywords: false }),
  dialect.language.data.of({ autocomplete: columnSource(schema) }),
];

/** Options of the editor. */
export interface EditorOptions {
  parent: HTMLElement;
  text: string;
  onRun: () => void;
  onChange: (text: string) => void;
}

export function createEditor({ parent, text, onRun, onChange }: EditorOptions): EditorView {
  const run = Prec.highest(keymap.of([{ key: 'Mod-Enter', run: () => (onRun(), true) }]));
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      run,
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ icons: false }),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({
        'aria-label': 'SQL',
        autocapitalize: 'off',
        spellcheck: 'false',
      }),
      placeholder('Write SQL, or choose a statement from the list'),
      syntaxHighlighting(colours),
      language.of(completing({})),
      marks,
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ],
  });
  // The first measurement used a fallback font.
  void document.fonts.ready.then(() => view.requestMeasure());
  return view;
}

/** Sets the tables and columns for completion. */
export function setSchema(view: EditorView, schema: Schema): void {
  view.dispatch({ effects: language.reconfigure(completing(schema)) });
}
