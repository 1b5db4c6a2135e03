/** Writes queries as SQL of Nacre: names in double quotes, parameters as `?`. */

import { DefaultQueryCompiler, type OrActionNode } from 'kysely';

/** Kysely's query compiler for Nacre. */
export class NacreQueryCompiler extends DefaultQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '?';
  }

  protected override sanitizeIdentifier(identifier: string): string {
    return identifier.replaceAll('"', '""');
  }

  /** `insert or ignore`, `insert or replace`. */
  protected override visitOrAction({ action }: OrActionNode): void {
    this.append(`or ${action}`);
  }
}
