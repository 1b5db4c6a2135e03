/**
 * The reference of the npm package, one Markdown page a subject, made from the declarations and doc
 * comments of its sources.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { declarations } from './declarations.mjs';

/** Where the pages are written, from the root. Git ignores the folder. */
export const API_FOLDER = 'docs/reference/api';

/** Pages, and the exports that each describes, in order. Every export is on one page. */
export const PAGES = [
  {
    name: 'connect',
    title: 'Connecting',
    text: 'Opens a database and sets its options.',
    exports: [
      ...['connect', 'connectInThread', 'ConnectOptions', 'TypeOptions'],
      ...['BlobsOptions', 'BlobOptions', 'BlobCredentials', 'BlobRequest'],
    ],
  },
  {
    name: 'database',
    title: 'Database',
    text:
      'An open database. It also has every function of [Running SQL](queries.md#queries): ' +
      '`query`, `exec`, `queryArrow`, `stream` and `prepare`.',
    exports: [
      ...['Database', 'StorageReport', 'LagReport', 'WaitOptions'],
      ...['TableReport', 'ColumnReport', 'SegmentReport'],
    ],
  },
  {
    name: 'queries',
    title: 'Running SQL',
    text: 'What a database and a transaction have in common.',
    exports: [
      ...['Queries', 'CallOptions', 'StatementOptions', 'Parameters', 'Parameter'],
      ...['sql', 'SqlQuery'],
    ],
  },
  {
    name: 'results',
    title: 'Results',
    text: 'What a statement answers.',
    exports: ['QueryResult', 'ResultColumn', 'Row', 'Statistics', 'ResultStream'],
  },
  {
    name: 'statements',
    title: 'Prepared statements',
    text: 'Statements that are parsed once and run many times.',
    exports: ['PreparedStatement'],
  },
  {
    name: 'transactions',
    title: 'Transaction',
    text:
      'What `db.transaction` passes to its function. It also has every function of ' +
      '[Running SQL](queries.md#queries).',
    exports: ['Transaction'],
  },
  {
    name: 'loading',
    title: 'Loading rows',
    text: 'Options and sources of `db.insertRows` and `db.insertArrow`.',
    exports: ['InsertOptions', 'Rows', 'Columns', 'NumberArray', 'ArrowSource'],
  },
  {
    name: 'live',
    title: 'Live queries',
    text: 'Results that are computed again when their tables have changed: `db.live`.',
    exports: [
      ...['Live', 'LiveCallback', 'LiveOptions', 'LiveSubscription'],
      ...['LiveChanges', 'Changes'],
    ],
  },
  {
    name: 'functions',
    title: 'Functions of the application',
    text: 'Options and sources of `db.createFunction` and `db.createAggregate`.',
    exports: ['FunctionOptions', 'AggregateOptions', 'AggregateFunction', 'ModuleExport'],
  },
  {
    name: 'thread',
    title: 'In the engine’s thread',
    text: 'What `connectInThread` answers.',
    exports: ['ThreadDatabase', 'ThreadStatement'],
  },
  {
    name: 'errors',
    title: 'Errors',
    text: 'Every failure is a `NacreError`.',
    exports: ['NacreError', 'ErrorKind', 'Position'],
  },
  {
    name: 'schema',
    title: 'Types of rows',
    text: 'What `connect<Schema>()` makes the compiler know. They exist for the compiler only.',
    exports: ['TableName', 'NewRow', 'RowIn', 'RowOf'],
  },
];

/**
 * The text of every page, by its file's name. Throws if an export is on no page or on several.
 *
 * @param {string} root
 * @returns {Map<string, string>}
 */
export function apiPages(root) {
  const all = declarations(root);
  const where = new Map(PAGES.flatMap(({ name, exports }) => exports.map((each) => [each, name])));
  const listed = PAGES.flatMap(({ exports }) => exports).sort();
  const exported = all.map(({ name }) => name).sort();
  if (listed.join() !== exported.join()) {
    const differ = [...listed, ...exported].filter(
      (name) => !exported.includes(name) || listed.filter((each) => each === name).length !== 1,
    );
    throw new Error(`tools/docs/api.mjs has to list each export once: ${differ.join(', ')}`);
  }
  return new Map(
    PAGES.map((page) => {
      const parts = page.exports.map((name) =>
        describe(
          all.find((each) => each.name === name),
          { where, page: page.name },
        ),
      );
      return [`${page.name}.md`, [`# ${page.title}`, page.text, ...parts].join('\n\n') + '\n'];
    }),
  );
}

/** Writes the pages, and removes those of exports that are gone. */
export function writeApi(root) {
  const folder = path.join(root, API_FOLDER);
  fs.mkdirSync(folder, { recursive: true });
  const pages = apiPages(root);
  pages.forEach((text, name) => fs.writeFileSync(path.join(folder, name), text));
  for (const name of fs.readdirSync(folder).filter((name) => !pages.has(name))) {
    fs.rmSync(path.join(folder, name));
  }
}

/** One export: heading, signature, text, members. */
function describe(declaration, context) {
  const { name, comment, signatures, members } = declaration;
  const fields = members.filter(({ callable }) => !callable);
  const functions = members.filter(({ callable }) => callable);
  const shown = new Set([name]);
  return [
    `## ${name}`,
    // `interface Row` alone repeats the heading.
    signatures[0] === `${declaration.kind} ${name}` ? '' : code(signatures),
    mentioned([...signatures, ...fields.map(({ type }) => type ?? '')], shown, context),
    prose(comment),
    ...table(fields),
    ...functions.map((member) =>
      [
        `### ${title(declaration, member)}`,
        code(member.signatures),
        mentioned(member.signatures, new Set(shown), context),
        prose(member.comment),
      ]
        .filter((part) => part !== '')
        .join('\n\n'),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function title({ name, kind }, member) {
  if (kind === 'function') {
    return `${name}.${member.name}`;
  }
  return member.name.replaceAll('[', '\\[').replaceAll(']', '\\]');
}

function code(signatures) {
  return `\`\`\`ts\n${signatures.join('\n')}\n\`\`\``;
}

/** Links to the other exports that a signature names. */
function mentioned(signatures, shown, { where, page }) {
  const links = signatures
    .flatMap((text) => text.replace(/'[^']*'/g, '').match(/\b[A-Z]\w+/g) ?? [])
    .filter((name) => where.has(name) && !shown.has(name) && shown.add(name))
    .map((name) => {
      const file = where.get(name) === page ? '' : `${where.get(name)}.md`;
      return `[${name}](${file}#${name.toLowerCase()})`;
    });
  return links.length === 0 ? '' : `See ${links.join(', ')}.`;
}

/** A doc comment as Markdown. */
function prose(comment) {
  return comment
    .replace(/^@example\n/gm, '')
    .replace(/^@returns (.*)/gm, 'Answers: $1')
    .replace(
      /^@default (.*)$/gm,
      (_, value) => `\nDefault: ${/\s/.test(value) ? value : `\`${value}\``}.`,
    )
    .trim();
}

/** Properties, as a table, and those with an example below it. */
function table(fields) {
  if (fields.length === 0) {
    return [];
  }
  const rows = fields.map(({ name, optional, type, comment }) => {
    const [text, ...examples] = prose(comment).split('```');
    const cell = `${text}${examples.length > 0 ? ' Example below.' : ''}`;
    return `| \`${name}${optional ? '?' : ''}\` | \`${escape(type)}\` | ${escape(cell)} |`;
  });
  const examples = fields
    .map(({ name, comment }) => [name, prose(comment).split('```').slice(1)])
    .filter(([, parts]) => parts.length > 0)
    .map(([name, parts]) => `An example of \`${name}\`:\n\n\`\`\`${parts.join('```')}`);
  return [['| name | type | meaning |', '| --- | --- | --- |', ...rows].join('\n'), ...examples];
}

/** Text that can stand in a cell of a table. */
function escape(text) {
  return text
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|');
}
