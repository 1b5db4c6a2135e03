/** What a new kind of index takes: its line in the list, with what distinguishes it. */
export default {
  check: ['nacre-types', 'nacre-sql', 'nacre-table'],
  places: [
    {
      edit: 'engine/types/src/schema/index.rs',
      after: 'index_kinds! {',
      insert: `    /// A dummy: \`USING DUMMY\`.
    Dummy = IndexTraits { code: 6, keyword: Some("DUMMY"), packs_integers: false };`,
    },
  ],
};
