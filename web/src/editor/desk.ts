// The editor as the rest of the console sees it: opens scripts, runs them, and marks where they
// failed.

import { closeCompletion } from '@codemirror/autocomplete';
import { effect, signal } from '@preact/signals';
import type { EditorView } from '@codemirror/view';

import { layers } from '../database/layers';
import { isBusy, run, runScript } from '../database/run';
import { split } from '../database/split';
import { remember } from '../queries/history';
import { share, sharedScript } from '../queries/share';
import { GROUPS } from '../queries/catalog';
import { explained, profiled } from './explain';
import { setMark } from './marks';
import { createEditor, setSchema } from './view';

export const script = signal(sharedScript() ?? GROUPS[0]!.queries[0]!.sql);

let view: EditorView | undefined;

/** Puts the editor into the page. Returns the function that removes it. */
export function mountEditor(parent: HTMLElement): () => void {
  const editor = createEditor({
    parent,
    text: script.value,
    onRun: () => void runEditor(),
    onChange: (text) => (script.value = text),
  });
  view = editor;
  const stopSchema = effect(() => {
    setSchema(
      editor,
      Object.fromEntries(
        layers.value.map((table) => [table.name, table.columns.map((c) => c.name)]),
      ),
    );
  });
  const stopMark = effect(() => showFailure(editor));
  const takeShared = () => openScript(sharedScript() ?? script.value, false);
  window.addEventListener('hashchange', takeShared);
  return () => {
    window.removeEventListener('hashchange', takeShared);
    stopSchema();
    stopMark();
    editor.destroy();
    view = undefined;
  };
}

/**
 * Replaces the script and, if `andRun`, runs it; then nothing happens while another script is
 * running.
 */
export function openScript(text: string, andRun: boolean): void {
  if (andRun && isBusy()) return;
  script.value = text;
  if (view && view.state.doc.toString() !== text) {
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: text },
      selection: { anchor: text.length },
    });
    closeCompletion(view);
  }
  if (andRun) void runEditor();
}

/** Runs the selection, or the whole script if nothing is selected. */
export async function runEditor(): Promise<void> {
  if (isBusy()) return;
  if (view) closeCompletion(view);
  remember(script.value);
  share(script.value);
  const { text, from } = picked();
  await runScript(text, from);
}

/**
 * Shows the plan of the first statement of the selection or script, without running any of them.
 */
export async function explainEditor(): Promise<void> {
  const { text, from } = picked();
  const first = split(text)[0];
  if (first) await runScript(explained(first.text), from + first.from);
}

/** Runs the first statement of the selection or script, and shows its plan with times. */
export async function profileEditor(): Promise<void> {
  const { text, from } = picked();
  const first = split(text)[0];
  if (first) await runScript(profiled(first.text), from + first.from);
}

/** The selection, or the whole script if nothing is selected, and its position. */
function picked(): { text: string; from: number } {
  const selection = view?.state.selection.main;
  if (!view || !selection || selection.empty) return { text: script.value, from: 0 };
  return { text: view.state.sliceDoc(selection.from, selection.to), from: selection.from };
}

function showFailure(editor: EditorView): void {
  const step = run.value?.steps.find(({ failure }) => failure);
  const { line, column, message } = step?.failure ?? {};
  const known = step && line !== undefined && column !== undefined && message !== undefined;
  // A statement that the editor does not contain (any longer) cannot be marked.
  const present =
    known && editor.state.sliceDoc(step.from, step.from + step.text.length) === step.text;
  const mark = present ? { at: step.from + offsetOf(step.text, line, column), message } : null;
  editor.dispatch({ effects: setMark.of(mark) });
}

/**
 * Converts a line and column to an offset: the engine counts characters, the editor UTF-16 units.
 */
function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const characters = [...(lines[line - 1] ?? '')].slice(0, column - 1);
  return before + characters.join('').length;
}
