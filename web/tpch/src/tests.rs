//! What the demo relies on: the row counts at scale factor 0.01, whole lines, and the official
//! columns.

use super::Rows;

fn count(table: &str) -> (u32, usize) {
    let Some(mut rows) = Rows::of(table, 0.01) else { return (0, 0) };
    let mut lines = 0;
    while rows.left() > 0 {
        let text = rows.take(1000);
        assert!(text.ends_with("|\n"), "{table}: a slice consists of whole lines");
        lines += text.lines().count();
    }
    assert!(rows.take(1000).is_empty());
    (rows.total(), lines)
}

#[test]
fn every_table_has_the_rows_it_announces() {
    for (table, rows) in [
        ("region", 5),
        ("nation", 25),
        ("supplier", 100),
        ("customer", 1500),
        ("part", 2000),
        ("partsupp", 8000),
        ("orders", 15000),
        ("lineitem", 60175),
    ] {
        assert_eq!(count(table), (rows, rows as usize), "{table}");
    }
}

#[test]
fn columns_except_comments_are_official() {
    let line = Rows::of("lineitem", 0.01).map(|mut rows| rows.take(1)).unwrap_or_default();
    assert!(
        line.starts_with("1|1552|93|1|17|24710.35|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|"),
        "{line}"
    );
}

#[test]
fn an_unknown_table_is_none() {
    assert!(Rows::of("line_item", 0.01).is_none());
}
