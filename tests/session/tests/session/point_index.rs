//! Point statements through unique keys and other indexes find, change and delete the same rows as
//! scans, wherever the rows are stored and whatever the transaction has done to them.

use nacre_native::block_on;
use nacre_session_tests::{Random, TWINS, fill_twins, memory_host, rows, run};
use nacredb::{Database, Options, Prepared, QueryResult, Session, Value};

/// Conditions, and the type of each parameter.
const CONDITIONS: [(&str, &str); 16] = [
    ("a = ?", "a"),
    ("b = ?", "b"),
    ("? = b and c = ?", "bc"),
    ("c = ? and b = ? and a > ?", "cba"),
    ("n = ?", "n"),
    ("n = ? and b = ?", "nb"),
    ("u = ? and v = ?", "uv"),
    ("u = ? and v = ? and a < ?", "uva"),
    ("u = ?", "u"),
    ("d = ?", "d"),
    ("d = ? and a = ?", "da"),
    ("a = ? and b = ? and c = ?", "abc"),
    ("a = ? and x = ?", "ax"),
    ("a = ? and id = ?", "ai"),
    ("a = ? and a = ? and b like 'name%'", "aa"),
    ("a = ? and c is null", "a"),
];

fn database() -> Database {
    block_on(Database::open(memory_host(), Options { partitions: 3, ..Options::default() }))
        .unwrap()
}

fn value(kind: char, random: &mut Random) -> Value {
    match kind {
        'i' => Value::Int(random.below(4_000) as i64),
        'n' => Value::Int(random.below(4_100) as i64),
        'a' => match random.below(30) {
            0 => Value::Null,
            n if n < 3 => Value::Int(i64::from(i32::MAX) + 1),
            _ => Value::Int(random.below(60) as i64),
        },
        'b' => Value::Text(format!("name {}", random.below(50))),
        'c' => Value::Int(random.below(6) as i64),
        'd' => Value::Float([0.0, -0.0, 1.5, 7.25][random.below(4) as usize]),
        'u' => Value::Int(random.below(40) as i64),
        'v' => Value::Text(format!("{:03}", random.below(100))),
        _ => Value::Int(random.below(3) as i64),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        Value::Float(v) => format!("{v:?}e0"),
        other => other.to_string(),
    }
}

/// Two tables with the same rows: one has keys, the other can only be scanned.
fn fill(session: &mut Session, key: &str, random: &mut Random) {
    let columns =
        "id int, a int, b varchar(20), c int, n int, u int, v varchar(9), d double, x int";
    let keys =
        "key i_a (a), key i_bc (b, c), unique key i_n (n), unique key i_uv (u, v), key i_d (d)";
    run(session, &format!("create table t ({columns}, {keys}{key})")).unwrap();
    run(session, &format!("create table p ({columns})")).unwrap();
    fill_twins(session, 4, 1000, |id| {
        let mut value = |kind| match value(kind, random) {
            Value::Int(n) if n > i64::from(i32::MAX) => Value::Null,
            other => other,
        };
        let (a, b, c, d, x) = (value('a'), value('b'), value('c'), value('d'), value('x'));
        let n = if id % 10 == 3 { Value::Null } else { Value::Int(id as i64) };
        let all = [a, b, if id.is_multiple_of(7) { Value::Null } else { c }, n]
            .map(|v| literal(&v))
            .join(", ");
        format!("({id}, {all}, {}, '{:03}', {}, {})", id / 100, id % 100, literal(&d), literal(&x))
    })
    .unwrap();
}

fn sorted(result: &QueryResult) -> Vec<String> {
    let mut rows: Vec<String> = result.to_rows().iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// A statement for each table, and its values.
type Pair = ([Prepared; 2], String);

fn prepared(session: &mut Session, sql: &str) -> Pair {
    (TWINS.map(|table| session.prepare(&sql.replace('@', table)).unwrap()), sql.to_string())
}

fn go(session: &mut Session, (pair, sql): &Pair, values: &[Value]) -> [QueryResult; 2] {
    let mut run = |at: usize| {
        block_on(session.run(&pair[at], values)).unwrap_or_else(|e| panic!("{sql}: {e}"))
    };
    [run(0), run(1)]
}

#[test]
fn what_indexes_find_is_what_a_scan_finds() {
    for (seed, key) in [(1, ", primary key (id)"), (2, ""), (3, ", primary key (id), sort key (a)")]
    {
        let db = database();
        let mut session = db.session();
        let mut random = Random::new(seed);
        fill(&mut session, key, &mut random);
        let select: Vec<Pair> = CONDITIONS
            .iter()
            .map(|(c, _)| prepared(&mut session, &format!("select x, b, id, d from @ where {c}")))
            .collect();
        let update: Vec<Pair> = CONDITIONS
            .iter()
            .map(|(c, _)| {
                prepared(
                    &mut session,
                    &format!("update @ set a = a + 1, b = ?, x = x + 1 where {c}"),
                )
            })
            .collect();
        let delete: Vec<Pair> = CONDITIONS
            .iter()
            .map(|(c, _)| prepared(&mut session, &format!("delete from @ where {c}")))
            .collect();
        let (mut found, mut short) = (0, 0);
        for step in 0..700u64 {
            match random.below(60) {
                0 => ["t", "p"]
                    .iter()
                    .for_each(|t| drop(run(&mut session, &format!("optimize table {t} flush")))),
                1 if !session.in_transaction() => {
                    drop(run(&mut session, "optimize table t full").unwrap())
                }
                2 | 3 if session.in_transaction() => drop(run(&mut session, "commit").unwrap()),
                4 if session.in_transaction() => drop(run(&mut session, "rollback").unwrap()),
                5..=7 if !session.in_transaction() => drop(run(&mut session, "begin").unwrap()),
                _ => {}
            }
            let which = random.below(CONDITIONS.len() as u64) as usize;
            let values: Vec<Value> =
                CONDITIONS[which].1.chars().map(|kind| value(kind, &mut random)).collect();
            if values.contains(&Value::Int(i64::from(i32::MAX) + 1)) {
                // A value out of the parameter's range: the same error from both.
                let mut fails = |at: usize| {
                    block_on(session.run(&select[which].0[at], &values))
                        .unwrap_err()
                        .sqlstate()
                        .to_string()
                };
                assert_eq!(fails(0), fails(1));
                continue;
            }
            let what = || format!("{seed} {step}: {} {values:?}", CONDITIONS[which].0);
            let [ours, scanned] = go(&mut session, &select[which], &values);
            assert_eq!(sorted(&ours), sorted(&scanned), "{}", what());
            found += ours.rows();
            short += usize::from(ours.rows() > 0 && ours.statistics.blocks_read == 0);
            if Session::is_point_read(&select[which].0[0]) {
                assert_eq!(
                    session.get(&select[which].0[0], &values).unwrap(),
                    scanned.to_rows().first().cloned(),
                    "{}",
                    what()
                );
            }
            if random.below(6) == 0 {
                let changing = if random.below(3) == 0 { &delete[which] } else { &update[which] };
                let mut values = values.clone();
                if !std::ptr::eq(changing, &delete[which]) {
                    values.insert(0, value('b', &mut random));
                }
                let [ours, scanned] = go(&mut session, changing, &values);
                assert_eq!(ours.rows_affected, scanned.rows_affected, "{}", what());
            }
        }
        assert!(found > 500, "{found}");
        assert!(short > 200, "{short}");
        if session.in_transaction() {
            run(&mut session, "commit").unwrap();
        }
        let all = |table: &str| format!("select * from {table} order by id");
        assert_eq!(rows(&mut session, &all("t")).unwrap(), rows(&mut session, &all("p")).unwrap());
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_whole_unique_key_is_a_point_read_and_a_part_of_it_is_not() {
    let db = database();
    let mut session = db.session();
    fill(&mut session, "", &mut Random::new(9));
    for (condition, point) in [
        ("n = ?", true),
        ("n = ? and a > 7", true),
        ("u = ? and v = 'x'", true),
        ("u = ? and v = 'x' and n = 1", true),
        ("u = ?", false),
        ("a = ?", false),
        ("n > ?", false),
        ("n is null", false),
    ] {
        let select = session.prepare(&format!("select * from t where {condition}")).unwrap();
        assert_eq!(Session::is_point_read(&select), point, "{condition}");
    }
    let by_n = session.prepare("select id, v from t where n = ?").unwrap();
    assert_eq!(
        session.get(&by_n, &[Value::Int(42)]).unwrap(),
        Some(vec![Value::Int(42), Value::Text("042".into())])
    );
    assert_eq!(session.get(&by_n, &[Value::Int(43)]).unwrap(), None);
    assert_eq!(session.get(&by_n, &[Value::Null]).unwrap(), None);
}

/// Lists of primary keys, some of which are missing, duplicated, null or out of range.
#[test]
fn lists_of_keys() {
    let db = database();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, n int)").unwrap();
    let all: Vec<String> = (0..50).map(|id| format!("({id}, {})", id * 2)).collect();
    run(&mut session, &format!("insert into t values {}", all.join(", "))).unwrap();
    let select =
        session.prepare("select id, n from t where id in (?, ?, 7, ?) and n <> 8").unwrap();
    let update = session.prepare("update t set n = n + 1 where id in (?, ?)").unwrap();
    let delete = session.prepare("delete from t where id in (?, ?)").unwrap();
    for flushed in [false, true] {
        if flushed {
            run(&mut session, "optimize table t flush").unwrap();
        }
        let found = |session: &mut Session, keys: [i64; 3]| {
            let keys = keys.map(Value::Int);
            sorted(&block_on(session.run(&select, &keys)).unwrap()).len()
        };
        assert_eq!(found(&mut session, [1, 2, 3]), 4);
        assert_eq!(found(&mut session, [7, 4, 1_000]), 1);
        let null = [Value::Null, Value::Int(9), Value::Int(9)];
        assert_eq!(block_on(session.run(&select, &null)).unwrap().rows(), 2);
        let pair = |a, b| [Value::Int(a), Value::Int(b)];
        assert_eq!(block_on(session.run(&update, &pair(10, 10))).unwrap().rows_affected, 1);
        assert_eq!(block_on(session.run(&update, &pair(11, 12))).unwrap().rows_affected, 2);
        let (a, b) = if flushed { (20, 21) } else { (30, 31) };
        assert_eq!(block_on(session.run(&delete, &pair(a, b))).unwrap().rows_affected, 2);
        assert_eq!(block_on(session.run(&delete, &pair(a, b))).unwrap().rows_affected, 0);
    }
    assert_eq!(rows(&mut session, "select count(*), sum(n) from t").unwrap(), ["46|2252"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}
