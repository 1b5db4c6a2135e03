/**
 * The package's public declarations, read from its sources with the parser of Rolldown: what
 * `public.ts` exports, `connect`, and the class that databases and transactions have in common.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { parseSync } from 'rolldown/utils';

const FOLDER = 'bindings/js/src';
/** Exports that `public.ts` does not name. */
const MORE = [
  ['connect.ts', 'connect'],
  ['connect.ts', 'connectInThread'],
  ['queries.ts', 'Queries'],
];

const NAMESPACE = 'TSModuleDeclaration';

/**
 * @typedef {object} Member A method or property, or a function of a function.
 * @property {string} name
 * @property {string} comment Text of its doc comment, without asterisks; empty without one.
 * @property {boolean} callable Whether it can be called, and so needs an example.
 * @property {string[]} signatures One for each overload.
 * @property {string} [type] Of a property: its type.
 *
 * @typedef {object} Declaration
 * @property {string} file Its source, from the root.
 * @property {'class' | 'interface' | 'type' | 'function'} kind
 * @property {Member[]} members
 */

/**
 * Every public declaration of the package.
 *
 * @param {string} root
 * @returns {(Declaration & Member)[]}
 */
export function declarations(root) {
  const exported = fs.readFileSync(path.join(root, FOLDER, 'public.ts'), 'utf8');
  const named = [...exported.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)\.js';$/gm)];
  const names = named.flatMap(([, list, file]) =>
    list
      .split(',')
      .map((name) => name.replace('type ', '').trim())
      .filter((name) => name !== '')
      .map((name) => [`${file}.ts`, name]),
  );
  return [...names, ...MORE].map(([file, name]) => {
    const source = path.posix.join(FOLDER, file);
    return { file: source, ...declaration(fs.readFileSync(path.join(root, source), 'utf8'), name) };
  });
}

/**
 * A declaration that a source exports, with its public members.
 *
 * @param {string} text
 * @param {string} name
 * @returns {Omit<Declaration & Member, 'file'>}
 */
export function declaration(text, name) {
  const source = new Source(text);
  const found = source.body.filter(
    ({ declaration: of }) => of?.id?.name === name && of.type !== NAMESPACE,
  );
  if (found.length === 0) {
    throw new Error(`there is no export ${name}`);
  }
  const { declaration: node } = found[0];
  const base = { name, comment: source.commentBefore(found[0].start) };
  switch (node.type) {
    case 'FunctionDeclaration':
      return {
        ...base,
        kind: 'function',
        callable: true,
        signatures: found.map(({ declaration: each }) => source.head(each)),
        members: source.functionsOf(name),
      };
    case 'TSTypeAliasDeclaration': {
      const signatures = [source.slice(node.start, node.end).replace(/;$/, '')];
      return { ...base, kind: 'type', callable: false, signatures, members: [] };
    }
    default: {
      const kind = node.type === 'ClassDeclaration' ? 'class' : 'interface';
      const signatures = [source.slice(node.start, node.body.start).trim()];
      const members = source.membersOf(node.body.body);
      return { ...base, kind, callable: false, signatures, members };
    }
  }
}

/** A parsed source and its comments. */
class Source {
  #text;
  #comments;

  constructor(text) {
    const { program, comments, errors } = parseSync('source.ts', text);
    if (errors.length > 0) {
      throw new Error(errors[0].message);
    }
    this.#text = text;
    this.#comments = new Map(
      comments
        .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
        .map(({ value, end }) => [end, value]),
    );
    this.body = program.body;
  }

  /** Source on one line, if it is short. */
  slice(start, end) {
    const text = this.#text.slice(start, end);
    const flat = text
      .replace(/\s*\n\s*/g, ' ')
      .replace(/([([<]) /g, '$1')
      .replace(/,? ([)\]>])/g, '$1');
    return flat.length <= 90 && !flat.includes('/*') ? flat : dedent(text);
  }

  /** The doc comment that ends where a node begins, but for blanks. */
  commentBefore(start) {
    const end = this.#text.slice(0, start).trimEnd().length;
    const lines = this.#comments.get(end)?.slice(1).split('\n') ?? [];
    return lines
      .map((line) => line.replace(/^\s*\* ?/, ''))
      .join('\n')
      .trim();
  }

  /** A function up to its body, without words that do not matter to a caller. */
  head(node) {
    const body = node.value?.body ?? node.body;
    return this.slice(node.start, body?.start ?? node.end)
      .trim()
      .replace(/^(?:async |override |export |get |\*\s*)+/, '')
      .replace(/^function /, '')
      .replace(/;$/, '');
  }

  /** Public members of a class or an interface, overloads as one. */
  membersOf(nodes) {
    const found = new Map();
    for (const node of nodes) {
      const { key } = node;
      const comment = this.commentBefore(node.start);
      const hidden =
        key === undefined ||
        key.type === 'PrivateIdentifier' ||
        node.kind === 'constructor' ||
        // A key such as `[MADE_BY_TAG]` cannot be written outside the package.
        (node.computed && key.type !== 'MemberExpression') ||
        (node.type === 'PropertyDefinition' && node.typeAnnotation == null) ||
        ['private', 'protected'].includes(node.accessibility) ||
        comment.includes('@internal');
      if (hidden) {
        continue;
      }
      const name = this.slice(key.start, key.end);
      const member = { name: node.computed ? `[${name}]` : name, comment, ...this.#member(node) };
      const before = found.get(name);
      if (before === undefined) {
        found.set(name, member);
      } else if (node.value?.body === null || node.value?.body === undefined) {
        before.signatures.push(...member.signatures);
      }
    }
    return [...found.values()].filter((member) => member !== null);
  }

  #member(node) {
    const isMethod =
      (node.type === 'MethodDefinition' && node.kind === 'method') ||
      node.type === 'TSMethodSignature';
    if (isMethod) {
      return { callable: true, signatures: [this.head(node)] };
    }
    const annotation = node.typeAnnotation ?? node.value?.returnType;
    const type =
      annotation == null ? '' : this.slice(annotation.start, annotation.end).replace(/^: ?/, '');
    return { callable: false, signatures: [], type, optional: node.optional === true };
  }

  /** Functions that the namespace of a function declares. */
  functionsOf(name) {
    const of = ({ declaration }) => declaration?.type === NAMESPACE && declaration.id.name === name;
    return this.body.filter(of).flatMap(({ declaration }) =>
      declaration.body.body.map((node) => {
        const { id } = node.declarations[0];
        const { start, end } = id.typeAnnotation.typeAnnotation;
        const head = this.slice(start, end).replace(/ => (?=[^>]*$)/, ': ');
        return {
          name: id.name,
          comment: this.commentBefore(node.start),
          callable: true,
          signatures: [`${name}.${id.name}${head}`],
        };
      }),
    );
  }
}

/**
 * Text whose lines after the first are indented as little as they can be: by nothing if the last one
 * closes a parenthesis, else by two blanks.
 */
function dedent(text) {
  const [first, ...rest] = text.split('\n');
  const widths = rest
    .filter((line) => line.trim() !== '')
    .map((line) => /^ */.exec(line)[0].length);
  const least = widths.length === 0 ? 0 : Math.min(...widths);
  const indent =
    /^\W/.test(rest.at(-1)?.trim() ?? '') && !/^[|?:]/.test(rest[0].trim()) ? '' : '  ';
  return [first, ...rest.map((line) => indent + line.slice(least))].join('\n');
}
