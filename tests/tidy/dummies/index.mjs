/** What a new kind of index takes: its variant, what distinguishes it, its line in the list. */
const FILE = 'engine/types/src/schema/index.rs';

export default {
  check: ['nacre-types', 'nacre-sql', 'nacre-table'],
  places: [
    {
      edit: FILE,
      after: 'Companion,',
      insert: `    /// A dummy: \`USING DUMMY\`.
    Dummy,`,
    },
    {
      edit: FILE,
      after: 'match self {',
      insert: `            IndexKind::Dummy => {
                IndexTraits { code: 6, keyword: Some("DUMMY"), packs_integers: false }
            }`,
    },
    {
      edit: FILE,
      after: 'IndexKind::Companion,',
      insert: '        IndexKind::Dummy,',
    },
  ],
};
