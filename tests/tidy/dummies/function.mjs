/** What a new scalar function takes: its entry, in the list of a file. */
export default {
  check: ['nacre-builtin', 'nacre-sql', 'nacre-exec'],
  places: [
    {
      edit: 'engine/builtin/src/scalar/trigonometry.rs',
      after: 'pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[',
      insert: `    &function(
        &["dummy", "dummy_alias"],
        Doc::new("dummy(x)", "Twice the argument.", "dummy(1)", "2.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0) * 2.0)),
    ),
`,
    },
  ],
};
