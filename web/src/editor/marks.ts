// Marks an error in the text: the wrong word is underlined, and a caret and the message stand below
// its line. Editing the text removes the mark.

import { StateEffect, StateField, type EditorState, type Extension } from '@codemirror/state';
import { Decoration, EditorView, WidgetType, type DecorationSet } from '@codemirror/view';

/** An error message, and the position of the first wrong character. */
export interface Mark {
  at: number;
  message: string;
}

export const setMark = StateEffect.define<Mark | null>();

class Caret extends WidgetType {
  readonly column: number;
  readonly message: string;

  constructor(column: number, message: string) {
    super();
    this.column = column;
    this.message = message;
  }

  override eq(other: Caret): boolean {
    return other.column === this.column && other.message === this.message;
  }

  override toDOM(): HTMLElement {
    const line = document.createElement('div');
    line.className = 'cm-error-caret';
    // The editor's font is monospaced: a character is one `ch`. The cap keeps room for the message
    // on long lines.
    line.style.paddingInlineStart = `calc(6px + ${Math.min(this.column, 40)}ch)`;
    const caret = document.createElement('span');
    caret.textContent = '^';
    caret.setAttribute('aria-hidden', 'true');
    line.append(caret, ` ${this.message}`);
    return line;
  }
}

const word = Decoration.mark({ class: 'cm-error-word' });

function decorate(state: EditorState, { at, message }: Mark): DecorationSet {
  const from = Math.min(at, state.doc.length);
  const line = state.doc.lineAt(from);
  const rest = /^(\w+|\s*\S)/.exec(state.sliceDoc(from, line.to));
  const caret = Decoration.widget({
    widget: new Caret(from - line.from, message),
    block: true,
    side: 1,
  }).range(line.to);
  const to = from + (rest?.[0].length ?? 0);
  return Decoration.set(to > from ? [word.range(from, to), caret] : [caret], true);
}

export const marks: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setMark))
        return effect.value ? decorate(transaction.state, effect.value) : Decoration.none;
    }
    return transaction.docChanged ? Decoration.none : value;
  },
  provide: (field) => EditorView.decorations.from(field),
});
