//! The databases under `data/`, with the statements that created each, so that a test can repeat
//! them and compare.
//!
//! A case is a list of statements. The committed folder was written by running them once with the
//! format of that time; a test runs them again in memory and expects the same rows from both. The
//! ignored test `write_the_folders` writes the folders that are missing. Existing ones are never
//! changed: a new format gets a new case.

use nacredb::Options;

/// A committed folder.
pub struct Case {
    /// Name of the folder under `data/`.
    pub name: &'static str,
    /// What the folder covers.
    pub why: &'static str,
    /// Bytes of log between snapshots: small for a case with a snapshot or a sealed chunk.
    pub snapshot_bytes: u64,
    /// Most rows of a segment.
    pub segment_rows: usize,
    /// The statements that create it.
    pub statements: fn() -> Vec<String>,
    /// Its tables, each with columns that define a total order.
    pub tables: &'static [(&'static str, &'static str)],
    /// Maintenance steps at the end.
    pub steps: usize,
}

/// Options of a case.
pub fn options(case: &Case) -> Options {
    Options {
        snapshot_bytes: case.snapshot_bytes,
        segment_rows: case.segment_rows,
        ..Options::default()
    }
}

const NO_SNAPSHOT: u64 = 1 << 30;
/// Segments of every case fit.
const WHOLE: usize = 1 << 20;

/// All cases.
pub const CASES: [Case; 15] = [
    Case {
        name: "log",
        why: "rows of every type in an unsealed log: put, delete, views, no segment",
        snapshot_bytes: NO_SNAPSHOT,
        segment_rows: WHOLE,
        statements: log,
        tables: &[("every", "id"), ("numbered", "a"), ("seen", "id")],
        steps: 0,
    },
    Case {
        name: "chunks",
        why: "a sealed chunk of the log, and one after it",
        snapshot_bytes: 256 << 10,
        segment_rows: WHOLE,
        statements: chunks,
        tables: &[("t", "id")],
        steps: 0,
    },
    Case {
        name: "snapshot",
        why: "a snapshot with rows in memory, segments and deleted rows, and records after it",
        snapshot_bytes: 20 << 10,
        segment_rows: WHOLE,
        statements: snapshot,
        tables: &[("t", "id"), ("numbered", "a")],
        steps: 1,
    },
    Case {
        name: "encodings",
        why: "segments with a column for each encoding, with and without nulls, deleted and moved rows",
        snapshot_bytes: NO_SNAPSHOT,
        segment_rows: WHOLE,
        statements: encodings,
        tables: &[("e", "id")],
        steps: 0,
    },
    Case {
        name: "altered",
        why: "rows of several versions of a schema in memory and in segments, a truncated and a dropped table",
        snapshot_bytes: NO_SNAPSHOT,
        segment_rows: WHOLE,
        statements: altered,
        tables: &[("renamed", "id"), ("emptied", "a")],
        steps: 0,
    },
    Case {
        name: "sort_key",
        why: "segments in the order of a sort key, with the key's order beside them",
        snapshot_bytes: NO_SNAPSHOT,
        segment_rows: WHOLE,
        statements: sort_key,
        tables: &[("s", "id"), ("h", "b, a")],
        steps: 0,
    },
    Case {
        name: "sharded",
        why: "rows in several partitions, by a shard key and in turn, in memory, in segments and in a snapshot",
        snapshot_bytes: 4 << 10,
        segment_rows: WHOLE,
        statements: sharded,
        tables: &[("p", "id, part"), ("turns", "a")],
        steps: 1,
    },
    Case {
        name: "described",
        why: "descriptions of segments, index parts and hash tables in a snapshot and after it, and the log's reach",
        snapshot_bytes: 2 << 10,
        segment_rows: WHOLE,
        statements: described,
        tables: &[("d", "id"), ("loose", "a")],
        steps: 40,
    },
    Case {
        name: "slices",
        why: "flushes of key ranges, of described files, with and without a sort key",
        snapshot_bytes: NO_SNAPSHOT,
        segment_rows: 40,
        statements: slices,
        tables: &[("s", "id"), ("d", "id"), ("n", "a")],
        steps: 0,
    },
    Case {
        name: "runs",
        why: "sorted runs of several segments, flushed, merged and loaded, in a snapshot and after it",
        snapshot_bytes: 4 << 10,
        segment_rows: 40,
        statements: runs,
        tables: &[("r", "id"), ("o", "id")],
        steps: 40,
    },
    Case {
        name: "rules",
        why: "defaults, checks, generated and identity columns, in a snapshot and after it",
        snapshot_bytes: 2 << 10,
        segment_rows: 80,
        statements: rules,
        tables: &[("r", "id"), ("late", "id")],
        steps: 40,
    },
    Case {
        name: "contents",
        why: "descriptions of files that say what is in them, in a snapshot and after it",
        snapshot_bytes: 2 << 10,
        segment_rows: 80,
        statements: described,
        tables: &[("d", "id"), ("loose", "a")],
        steps: 40,
    },
    Case {
        name: "outlines",
        why: "blocks of more than 4 KiB in each encoding that is read by parts, with their outlines",
        snapshot_bytes: 4 << 10,
        segment_rows: WHOLE,
        statements: outlines,
        tables: &[("o", "id"), ("n", "n")],
        steps: 40,
    },
    Case {
        name: "tokens",
        why: "texts as codes of tokens that blocks share, with nulls and empty texts, with outlines",
        snapshot_bytes: 4 << 10,
        segment_rows: WHOLE,
        statements: tokens,
        tables: &[("o", "id"), ("n", "n")],
        steps: 40,
    },
    Case {
        name: "documents",
        why: "JSON as sub-columns of every kind, with arrays in arrays, the rest and nulls, and as text",
        snapshot_bytes: 4 << 10,
        segment_rows: WHOLE,
        statements: documents,
        tables: &[("d", "id"), ("n", "n")],
        steps: 40,
    },
];

fn log() -> Vec<String> {
    let mut all = vec![
        "create table every (id bigint primary key, yes boolean, tiny tinyint, small smallint, n int not null default 7, \
         big bigint unsigned, f float, d double, p decimal(8,2), q decimal(30,5), t text, v varchar(9), b blob, day date, \
         at time, ts timestamp, j json)"
            .to_string(),
        "create table numbered (a int, b text)".into(),
        "insert into every values (1, true, -128, -32768, 2147483647, 18446744073709551615, 1.5, -2.25, 123456.78, \
         -1234567890123456789012345.54321, 'text é', 'nine char', X'00ff10', DATE '2026-11-21', TIME '13:05:07.25', \
         TIMESTAMP '1969-12-31 23:59:59.999999', '{\"a\": [1, null]}')"
            .into(),
        "insert into every (id) values (2), (3), (4)".into(),
    ];
    all.push("delete from every where id = 3".into());
    all.push("update every set t = 'changed', n = -1 where id = 4".into());
    all.push("insert into numbered values (1, 'x'), (2, null), (3, '')".into());
    all.push("delete from numbered where a = 1".into());
    all.push("create view seen as select id, t from every where id > 1".into());
    all
}

fn chunks() -> Vec<String> {
    let mut all = vec!["create table t (id int primary key, filler text)".to_string()];
    all.extend((0..5).map(|id| format!("insert into t values ({id}, repeat('{id} ', 8000))")));
    all.push("delete from t where id = 1".into());
    all
}

fn snapshot() -> Vec<String> {
    let mut all = vec![
        "create table t (id int primary key, n int, filler text)".to_string(),
        "create table numbered (a int)".into(),
        format!(
            "insert into t values {}",
            rows(0..300, |id| format!("({id}, {}, 'row {id}')", id * 3 % 50))
        ),
        "optimize table t flush".into(),
        "delete from t where id between 10 and 20".into(),
        "update t set n = 1000 where id = 200".into(),
    ];
    all.push(
        "insert into numbered values (1), (2); optimize table numbered flush; insert into numbered values (3)".into(),
    );
    all.push("insert into t values (1000, 0, repeat('filler ', 4000))".into());
    all
}

/// Statements after the snapshot of the case `snapshot`.
pub const AFTER_SNAPSHOT: &str =
    "delete from t where id = 30; insert into t values (2000, 1, 'after')";

fn rows(ids: std::ops::Range<i64>, row: impl Fn(i64) -> String) -> String {
    ids.map(row).collect::<Vec<_>>().join(", ")
}

fn encodings() -> Vec<String> {
    let columns = "id bigint primary key, constant int, runs int, packed int, ascending bigint, coded text, symbols text, \
                   long_text text, price double, noise double, wide decimal(30,0), flags boolean, holes int, only_null text, \
                   binary_data blob";
    // Deterministic numbers that look like noise.
    let mix = |id: i64| (id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) as u64 >> 20) as i64;
    let row = |id: i64| {
        let words = ["nacre", "layer", "shell", "pearl", "table", "commit"];
        let word = |n: i64| words[(mix(id * 7 + n) % 6) as usize];
        format!(
            "({id}, 42, {}, {}, {}, '{}', '{} {} {}', '{}', {}.{:02}, {}.{:09}e-3, {}, {}, {}, null, X'{:08x}')",
            id / 100,
            mix(id) % 1000,
            1_700_000_000 + id * 60 + mix(id) % 50,
            word(1),
            word(2),
            word(3),
            mix(id) % 997,
            format!("{} ", mix(id)).repeat(12),
            mix(id) % 100,
            id % 100,
            mix(id) % 9,
            mix(id * 3) % 1_000_000_000,
            mix(id),
            id % 3 == 0,
            if id % 5 == 0 { "null".to_string() } else { (id % 100).to_string() },
            mix(id) as u32,
        )
    };
    let mut all = vec![format!("create table e ({columns})")];
    all.extend(
        (0..4).map(|part| {
            format!("insert into e values {}", rows(part * 150..(part + 1) * 150, row))
        }),
    );
    all.push("optimize table e full".into());
    all.push("delete from e where id between 100 and 130".into());
    all.push("update e set packed = -5 where id in (7, 300, 599)".into());
    all
}

fn outlines() -> Vec<String> {
    // 65 by 65 rows: a whole block, and the start of another one.
    let numbers: Vec<String> = (0..65).map(|n| format!("({n})")).collect();
    let columns = "id bigint primary key, packed int, holes int, ascending bigint, coded text, symbols text, \
                   long_text text, price double, noise double, binary_data text";
    let rows = "select id, id * 7919 % 100003, case when id % 7 = 0 then null else id * 104729 % 1000003 end, \
                id * 1000003 + id * 7919 % 999983, 'city ' || cast(id * 31 % 1000 as text), \
                'a note about row ' || cast(id * 7919 % 100003 as text), \
                case when id % 50 = 0 then 'long ' || cast(id * 7919 as text) || ' and ' || cast(id * 104729 as text) \
                else '' end, \
                id * 7919 % 100003 / 8.0, 1.0 / (id + 1), cast(id * 982451653 % 999999937 as text) \
                from (select a.n * 65 + b.n as id from n as a, n as b) as numbers";
    vec![
        "create table n (n bigint primary key)".into(),
        format!("insert into n values {}", numbers.join(", ")),
        format!("create table o ({columns})"),
        format!("insert into o {rows}"),
        "optimize table o full".into(),
        "delete from o where id between 100 and 130".into(),
        "update o set packed = -5 where id in (7, 300, 4200)".into(),
    ]
}

fn tokens() -> Vec<String> {
    // 65 by 65 rows: a whole block, and the start of another one.
    let numbers: Vec<String> = (0..65).map(|n| format!("({n})")).collect();
    let word = |salt: u32, step: u32| {
        format!(
            "case (id * {salt} + id / {step}) % 4 when 0 then ' the quick order' when 1 then ' sleeps' \
             when 2 then ' füreinander' else ' among 中文 accounts' end"
        )
    };
    let words = |salt: u32| [3, 17, 71, 5, 29, 113].map(|step| word(salt, step)).join(" || ");
    let rows = format!(
        "select id, 'note ' || cast(id * 7919 % 100003 as text) || {}, \
         case when id % 7 = 0 then null when id % 5 = 0 then '' \
         else cast(id * 104729 % 100019 as text) || {} end \
         from (select a.n * 65 + b.n as id from n as a, n as b) as numbers",
        words(5),
        words(11)
    );
    vec![
        "create table n (n bigint primary key)".into(),
        format!("insert into n values {}", numbers.join(", ")),
        "create table o (id bigint primary key, words text, holes text)".into(),
        format!("insert into o {rows}"),
        "optimize table o full".into(),
        "delete from o where id between 100 and 130".into(),
        "update o set words = 'changed' where id in (7, 300, 4200)".into(),
    ]
}

fn documents() -> Vec<String> {
    // 65 by 65 rows: a whole block, and the start of another one.
    let numbers: Vec<String> = (0..65).map(|n| format!("({n})")).collect();
    let line = |nr: u32| {
        format!(
            "'{{\"nr\":{nr},\"sku\":' || cast(id * {nr} * 7919 % 100003 as text) || ',\"name\":\"item ' \
             || cast(id * 31 % 1000 as text) || '\",\"sizes\":[[' || cast(id % 7 as text) || '],[]]}}'"
        )
    };
    let document = format!(
        "case when id % 50 = 0 then null when id % 41 = 0 then '[true,null,\"\\ud800\",1.50]' \
         when id % 43 = 0 then '{{\"lines\":{{\"a\":1}},\"id\":\"' || cast(id as text) || '\"}}' \
         when id = 1001 then '{{\"rare\":[1],\"id\":7,\"\\ud800\":{{}}}}' \
         else '{{\"id\":' || cast(id as text) || ',\"paid\":' || case when id % 3 = 0 then 'true' else 'false' end \
         || ',\"price\":' || cast(cast(id * 7919 % 100003 / 8.0 as double) as text) \
         || ',\"lines\":[' || {} \
         || case when id % 2 = 0 then ',' || {} else '' end || ']}}' end",
        line(1),
        line(2)
    );
    let rows = "from (select a.n * 65 + b.n as id from n as a, n as b) as numbers";
    vec![
        "create table n (n bigint primary key)".into(),
        format!("insert into n values {}", numbers.join(", ")),
        "create table d (id bigint primary key, doc json, other json)".into(),
        format!(
            "insert into d select id, cast({document} as json), \
             cast('{{\"k' || cast(id as text) || '\":1}}' as json) {rows}"
        ),
        "optimize table d full".into(),
        "delete from d where id between 100 and 130".into(),
        "update d set doc = '{\"changed\": [1, 2]}' where id in (7, 300, 4200)".into(),
    ]
}

fn altered() -> Vec<String> {
    let script = "create table t (id int primary key, a text, b int);
        insert into t values (1, 'one', 10), (2, 'two', 20);
        optimize table t flush;
        insert into t values (3, 'three', 30);
        alter table t add column c int not null default 5 first;
        insert into t values (6, 4, 'four', 40);
        alter table t drop column a;
        update t set b = 21 where id = 2;
        optimize table t flush;
        alter table t add column a double default 1.5, rename column b to bb;
        insert into t values (7, 5, 50, 2.5);
        alter table t rename to renamed;
        create table emptied (a int);
        insert into emptied values (1), (2);
        optimize table emptied flush;
        truncate table emptied;
        insert into emptied values (3);
        create table dropped (a int); insert into dropped values (1); optimize table dropped flush; drop table dropped";
    script.split(';').map(|s| s.trim().to_string()).collect()
}

fn sort_key() -> Vec<String> {
    vec![
        "create table s (id bigint primary key, day date, name text, sort key (day, name))".into(),
        format!(
            "insert into s values {}",
            rows(0..300, |id| {
                let day = if id % 50 == 0 {
                    "null".to_string()
                } else {
                    format!("DATE '2026-01-{:02}'", 1 + id * 7 % 28)
                };
                format!("({id}, {day}, 'name {}')", id % 11)
            })
        ),
        "optimize table s flush".into(),
        "delete from s where id between 40 and 49".into(),
        "update s set day = DATE '2027-01-01' where id = 7".into(),
        "create table h (a int, b text, sort key (b))".into(),
        "insert into h values (1, 'z'), (2, 'a'), (3, 'm'), (1, 'a')".into(),
        "optimize table h flush".into(),
        "insert into h values (9, 'b')".into(),
    ]
}

fn sharded() -> Vec<String> {
    vec![
        "create table p (id int, part text, n int, primary key (id, part), shard key (part))"
            .into(),
        format!(
            "insert into p values {}",
            rows(0..120, |id| format!("({id}, 'part {}', {})", id % 7, id * 2))
        ),
        "optimize table p flush".into(),
        "delete from p where id < 10".into(),
        "update p set n = -1 where id = 50".into(),
        "create table turns (a int, b text, shard key ())".into(),
        format!("insert into turns values {}", rows(0..60, |a| format!("({a}, 'turn {a}')"))),
        "optimize table turns flush".into(),
        "insert into turns values (100, 'late')".into(),
    ]
}

fn described() -> Vec<String> {
    let ordinary = |id: i64| format!("({id}, 'name {}', {})", id % 13, id * 7 % 31);
    vec![
        "create table d (id bigint primary key, name text, n int, key (name), unique key (id, n))"
            .into(),
        format!("insert into d values {}", rows(0..200, ordinary)),
        "optimize table d flush".into(),
        format!("insert into d values {}", rows(200..300, ordinary)),
        "optimize table d flush".into(),
        "create index of_n on d (n)".into(),
        "delete from d where n = 7".into(),
        "create table loose (a int, b text)".into(),
        "insert into loose values (1, 'x'), (2, null); optimize table loose flush".into(),
    ]
}

fn rules() -> Vec<String> {
    let names = |names: std::ops::Range<i64>| rows(names, |n| format!("('name {n}')"));
    vec![
        "create table r (id bigint generated by default as identity primary key, name text, \
         kind text default upper('plain'), length int generated always as (char_length(name)) stored, \
         twice int as (length * 2), constraint named check (name <> ''), check (length < 100))"
            .into(),
        format!("insert into r (name) values {}", names(0..120)),
        "optimize table r flush".into(),
        format!("insert into r (name) values {}", names(200..230)),
        "insert into r (id, name) values (500, 'far')".into(),
        "delete from r where id = 500".into(),
        "create table late (id int primary key auto_increment, n int)".into(),
        "alter table late alter column n set default 2 + 3, add check (n > 0)".into(),
        "insert into late (n) values (1), (2)".into(),
        "insert into late (id) values (7)".into(),
    ]
}

fn slices() -> Vec<String> {
    vec![
        "create table s (id int primary key, a int, key (a))".into(),
        format!("insert into s values {}", rows(0..100, |id| format!("({id}, {})", id * 7 % 30))),
        "create table d (id text primary key, day date, sort key (day))".into(),
        format!(
            "insert into d values {}",
            rows(0..90, |id| format!("('key {id:03}', DATE '2026-02-{:02}')", 1 + id * 5 % 28))
        ),
        "create table n (a int)".into(),
        format!("insert into n values {}", rows(0..50, |a| format!("({a})"))),
        "optimize table s flush; optimize table d flush; optimize table n flush".into(),
        "delete from s where id in (10, 39, 40, 99)".into(),
        "insert into s values (200, 1), (-1, 2), (101, 3)".into(),
        "update d set day = null where id = 'key 041'".into(),
        "optimize table s flush".into(),
        "insert into n values (1000)".into(),
        "delete from n where a = 7".into(),
    ]
}

fn runs() -> Vec<String> {
    let fill = |table: &str, ids: &dyn Fn(i64) -> i64| {
        format!("insert into {table} values {}", rows(0..150, |n| format!("({}, {n})", ids(n))))
    };
    vec![
        "create table r (id int primary key, n int)".into(),
        "create table o (id int primary key, n int, sort key (n))".into(),
        fill("r", &|n| n * 2),
        "optimize table r flush".into(),
        fill("r", &|n| n * 2 + 1),
        "delete from r where id between 20 and 30".into(),
        "optimize table r full".into(),
        fill("r", &|n| 1_000 + n),
        "optimize table r flush".into(),
        fill("o", &|n| 500 - n),
        "optimize table o flush".into(),
        fill("o", &|n| 1_000 - n),
        "optimize table o flush".into(),
        "delete from r where id = 1010".into(),
        "insert into o values (-1, 70)".into(),
    ]
}
