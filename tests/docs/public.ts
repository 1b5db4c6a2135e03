/** The package's public declarations and their members, as a list. */

import { declaration, declarations, type Declaration } from '../../tools/docs/declarations.mjs';

/** A public function, method, property or type. */
export interface Public {
  /** File and name: `bindings/js/src/sql.ts: sql.join`. */
  name: string;
  /** Its doc comment; empty without one. */
  comment: string;
  /** Whether it can be called, and so needs an example. */
  callable: boolean;
}

/** Every public declaration of the package. */
export function everything(root: string): Public[] {
  return declarations(root).flatMap((each) =>
    withMembers(each).map((found) => ({ ...found, name: `${each.file}: ${found.name}` })),
  );
}

/** A declaration of a source, and its members. */
export function inSource(text: string, name: string): Public[] {
  return withMembers(declaration(text, name));
}

function withMembers({ name, comment, callable, members }: Omit<Declaration, 'file'>): Public[] {
  const own = members.map((member) => ({
    name: `${name}.${member.name}`,
    comment: member.comment,
    callable: member.callable,
  }));
  return [{ name, comment, callable }, ...own];
}
