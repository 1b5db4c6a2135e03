/** What every driver of Drizzle uses though its declarations leave it out. */

import type { SelectedFieldsOrdered } from 'drizzle-orm/pg-core';
import * as utils from 'drizzle-orm/utils';

/** Makes the object that a query selects out of a row's values. */
export const mapResultRow = (utils as Record<string, unknown>)['mapResultRow'] as (
  fields: SelectedFieldsOrdered,
  row: unknown[],
  joinsNotNullableMap: Record<string, boolean> | undefined,
) => unknown;
