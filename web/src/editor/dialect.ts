// The words of Nacre's SQL, for highlighting and completion.

import { SQLDialect } from '@codemirror/lang-sql';

export const dialect = SQLDialect.define({
  keywords:
    `add all alter and any as asc analyze begin between by case cast check column commit conflict constraint
    create cross current default delete desc distinct do drop duplicate else end escape except exclude exists explain
    false first flush for from full group having if ignore in index inner insert intersect interval into is isolation
    join key last lateral left like limit not nothing null nulls of offset on optimize or order outer over partition
    primary profile recursive release replace restrict returning right rollback row rows savepoint select set show sort
    start table tables then to transaction true union unique update using values view when where window with work`.replace(
      /\s+/g,
      ' ',
    ),
  types:
    `bigint binary blob boolean char date datetime decimal double float integer int json numeric real smallint text
    time timestamp tinyint unsigned varbinary varchar`.replace(/\s+/g, ' '),
  builtin:
    `abs avg ceil coalesce concat count date_trunc extract floor greatest least length lower max min nullif
    position replace round sqrt substring sum trim upper`.replace(/\s+/g, ' '),
  backslashEscapes: false,
  doubleDollarQuotedStrings: false,
  operatorChars: '*+-%<>!=&|^/~',
  specialVar: '$:',
  identifierQuotes: '"`',
});
