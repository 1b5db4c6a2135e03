// The page: a form that stores expenses, a chart of the month, and the latest entries. All text
// goes in as text.

import { NacreError } from 'nacredb';
import { openExpenses, type CategoryTotal, type Expense, type Expenses } from './database';

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const form = element<HTMLFormElement>('add');
const status = element('status');

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
  ...children: Node[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Today in the user's time zone, as the form and SQL write it. */
function today(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

function bar({ category, total, share }: CategoryTotal): HTMLElement {
  const fill = make('span', { className: 'fill' });
  fill.style.width = `${(100 * share).toFixed(1)}%`;
  return make(
    'p',
    { className: 'bar' },
    make('span', { textContent: category }),
    make('span', { className: 'track' }, fill),
    make('output', { textContent: total }),
  );
}

function line(expense: Expense, remove: () => void): HTMLElement {
  const button = make('button', { type: 'button', textContent: 'Remove', onclick: remove });
  button.setAttribute('aria-label', `Remove ${expense.what}`);
  const cells = [expense.day, expense.category, expense.what, expense.amount];
  return make(
    'tr',
    {},
    ...cells.map((textContent) => make('td', { textContent })),
    make('td', {}, button),
  );
}

async function show(expenses: Expenses): Promise<void> {
  const [latest, totals, categories] = await Promise.all([
    expenses.latest(),
    expenses.totals(today()),
    expenses.categories(),
  ]);
  const removing = (id: number) => () => void changing(() => expenses.remove(id));
  element('rows').replaceChildren(...latest.map((each) => line(each, removing(each.id))));
  element('chart').replaceChildren(...totals.map(bar));
  element('categories').replaceChildren(...categories.map((value) => make('option', { value })));
  status.textContent =
    latest.length === 0 ? 'No expenses yet.' : 'Stored in this browser; a reload finds everything.';
}

/** Changes the database, or says why not. Every tab shows the result, as it follows the database. */
async function changing(change: () => Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    status.textContent = explain(error);
  }
}

function explain(error: unknown): string {
  if (error instanceof NacreError && error.kind === 'in_use') {
    return 'A tab with another version of this page has the expenses open. Close it, then reload.';
  }
  return error instanceof Error ? error.message : String(error);
}

async function start(): Promise<void> {
  const day = form.elements.namedItem('day') as HTMLInputElement;
  day.value = today();
  const expenses = await openExpenses();
  form.onsubmit = (event) => {
    event.preventDefault();
    const field = (name: string) => String(new FormData(form).get(name)).trim();
    const expense = {
      day: field('day'),
      category: field('category'),
      what: field('what'),
      amount: field('amount'),
    };
    void changing(async () => {
      await expenses.add(expense);
      form.reset();
      day.value = expense.day;
    });
  };
  await expenses.follow(() => show(expenses));
}

start().catch((error: unknown) => (status.textContent = explain(error)));
