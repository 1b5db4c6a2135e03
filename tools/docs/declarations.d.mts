/** Types of `declarations.mjs`, for the tests that use it. */
export interface Member {
  name: string;
  comment: string;
  callable: boolean;
  signatures: string[];
  type?: string;
  optional?: boolean;
}
export interface Declaration extends Member {
  file: string;
  kind: 'class' | 'interface' | 'type' | 'function';
  members: Member[];
}
export function declarations(root: string): Declaration[];
export function declaration(text: string, name: string): Omit<Declaration, 'file'>;
