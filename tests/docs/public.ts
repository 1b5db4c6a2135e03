/**
 * Reads the package's public declarations from its sources: what `public.ts` exports, `connect`,
 * and the class that databases and transactions have in common. It relies on Prettier's layout:
 * members are indented by two spaces.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';

/** A public function, method, property or type. */
export interface Declaration {
  /** File and name: `bindings/js/src/sql.ts: sql.join`. */
  name: string;
  /** The doc comment before it; empty without one. */
  comment: string;
  /** Whether it can be called, and so needs an example. */
  callable: boolean;
}

const FOLDER = 'bindings/js/src';
/** Exports that `public.ts` does not name. */
const MORE = [
  ['connect.ts', 'connect'],
  ['connect.ts', 'connectInThread'],
  ['node.ts', 'connect'],
  ['node.ts', 'connectInThread'],
  ['queries.ts', 'Queries'],
] as const;

/** Every public declaration of the package. */
export function declarations(root: string): Declaration[] {
  const exported = fs.readFileSync(path.join(root, FOLDER, 'public.ts'), 'utf8');
  const named = [...exported.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)\.js';$/gm)];
  const names = named.flatMap(([, list, file]) =>
    list!.split(',').map((name) => [`${file}.ts`, name.replace('type ', '').trim()] as const),
  );
  return [...names, ...MORE].flatMap(([file, name]) => {
    const source = path.posix.join(FOLDER, file);
    const lines = fs.readFileSync(path.join(root, source), 'utf8').split('\n');
    return declarationsOf(lines, name).map((found) => ({
      ...found,
      name: `${source}: ${found.name}`,
    }));
  });
}

/**
 * A declaration and its members: methods and properties of a class or interface, functions of a
 * function.
 */
export function declarationsOf(lines: string[], name: string): Declaration[] {
  const start = new RegExp(
    `^export (?:async |abstract )*(class|interface|type|function|const) ${name}\\b`,
  );
  const at = lines.findIndex((line) => start.test(line));
  if (at === -1) {
    throw new Error(`there is no export ${name}`);
  }
  const kind = start.exec(lines[at]!)![1];
  const found = [{ name, comment: commentBefore(lines, at), callable: kind === 'function' }];
  if (kind === 'class' || kind === 'interface') {
    const end = lines.indexOf('}', at);
    for (let line = at + 1; line < end; line++) {
      const member = memberIn(lines[line]!);
      const comment = commentBefore(lines, line);
      const repeats = found.at(-1)!.name === `${name}.${member?.name}`;
      if (member !== null && !comment.includes('@internal') && !repeats) {
        found.push({ name: `${name}.${member.name}`, comment, callable: member.callable });
      }
    }
  }
  lines.forEach((line, index) => {
    const property = new RegExp(`^${name}\\.(\\w+) = \\(`).exec(line);
    if (property !== null) {
      const comment = commentBefore(lines, index);
      found.push({ name: `${name}.${property[1]}`, comment, callable: true });
    }
  });
  return found;
}

/**
 * The public member that begins on a line. Private members begin with `#`, and `protected` ones are
 * not public.
 */
function memberIn(line: string): { name: string; callable: boolean } | null {
  const pattern =
    /^ {2}(?:(?:readonly|override|async|get|\*)\s*)*(\w+|\[[\w.]+\])(?:<[^(]*>)?(\?|:|\(|$)/;
  const match = pattern.exec(line.replace(/^ {2}async \*/, '  async '));
  const [, name, next] = match ?? [];
  if (name === undefined || ['constructor', 'protected', 'private', 'static'].includes(name)) {
    return null;
  }
  return { name, callable: next === '(' };
}

function commentBefore(lines: string[], at: number): string {
  if (!lines[at - 1]?.trimEnd().endsWith('*/')) {
    return '';
  }
  let start = at - 1;
  while (!lines[start]!.trimStart().startsWith('/**')) {
    start--;
  }
  return lines.slice(start, at).join('\n');
}
