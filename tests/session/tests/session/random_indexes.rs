//! Creates random tables twice, plain and with keys, indexes, sort and shard keys, in random states
//! (rows in memory, in segments, deleted, changed by the open transaction). Every query must return
//! the same from both, however it is executed.

use nacre_native::block_on;
use nacre_session_tests::{Random, options, rows, run, threaded};
use nacredb::{ErrorKind, Options, QueryResult, Session};

const COLUMNS: [(&str, &str); 9] = [
    ("a", "int"),
    ("b", "bigint"),
    ("c", "varchar(8)"),
    ("d", "decimal(8,2)"),
    ("e", "double"),
    ("f", "date"),
    ("g", "tinyint"),
    ("h", "boolean"),
    ("i", "bigint unsigned"),
];
const SEEDS: std::ops::Range<u64> = 1..16;
const IDS: u64 = 900;

fn one_of<'t>(random: &mut Random, list: &[&'t str]) -> &'t str {
    list[random.below(list.len() as u64) as usize]
}

fn column(random: &mut Random) -> usize {
    random.below(COLUMNS.len() as u64) as usize
}

/// A value that a column can store.
fn stored(random: &mut Random, column: usize) -> String {
    if random.below(8) == 0 {
        return "null".into();
    }
    let n = random.below(40);
    match column {
        0 => (n / 2).to_string(),
        1 => random.below(300).to_string(),
        2 if n == 0 => "''".into(),
        2 => format!("'k{n}'"),
        3 => format!("{}.{:02}", n / 2, 25 * random.below(4)),
        4 if n < 12 => format!("{n}.5"),
        4 => format!("cast('{}' as double)", one_of(random, &["nan", "-0.0", "0", "inf"])),
        5 => format!("'2024-01-{:02}'", 1 + n / 2),
        6 => format!("{}", n as i64 % 5 - 2),
        7 => one_of(random, &["true", "false"]).into(),
        _ if n < 4 => u64::MAX.to_string(),
        _ => (n % 30).to_string(),
    }
}

/// A constant to compare a column with, occasionally outside the column's range or of another type.
fn constant(random: &mut Random, column: usize) -> String {
    let n = random.below(20);
    match (column, random.below(10)) {
        (0 | 1, 0) => format!("{n}.5"),
        (0 | 1, 1) => format!("{n}e0"),
        (0, 2) => "99999999999".into(),
        (1, 2) => "99999999999999999999999".into(),
        (2, 0) => "'k1k1k1k1k1k1k1k1'".into(),
        (3, 0) => format!("{n}.125"),
        (3, 1) => "123456789012.5".into(),
        (3, 2) => format!("{n}.5e0"),
        (4, 0) => n.to_string(),
        (5, 0) => format!("timestamp '2024-01-{:02} 12:00:00'", 1 + n),
        (5, 1) => format!("timestamp '2024-01-{:02} 00:00:00'", 1 + n),
        (6, 0) => "1000".into(),
        (8, 0) => "-1".into(),
        (8, 1) => "3.0".into(),
        _ => stored(random, column),
    }
}

/// A condition on a row whose columns have `prefix`.
fn condition(random: &mut Random, prefix: &str, depth: u32) -> String {
    if depth > 0 && random.below(2) == 0 {
        let (x, y) = (condition(random, prefix, depth - 1), condition(random, prefix, depth - 1));
        return match random.below(8) {
            0..3 => format!("({x} and {y})"),
            3..6 => format!("({x} or {y})"),
            6 => format!("not ({x})"),
            _ => {
                format!("case when {x} then {y} else {} end", condition(random, prefix, depth - 1))
            }
        };
    }
    let (p, id) = (prefix, random.below(IDS));
    match random.below(40) {
        0 => return format!("{p}id = {id}"),
        1 => return format!("{p}id in ({id}, {}, null, {id}.0)", random.below(IDS)),
        2 => return format!("{p}id < {}", id / 9),
        _ => {}
    }
    let at = column(random);
    let name = format!("{p}{}", COLUMNS[at].0);
    let list = |random: &mut Random, n: u64| {
        let list: Vec<String> = (0..n).map(|_| constant(random, at)).collect();
        list.join(", ")
    };
    let value = constant(random, at);
    match random.below(16) {
        0..5 => format!("{name} = {value}"),
        5 => format!("{value} = {name}"),
        6 => format!("{name} <=> {value}"),
        7 => format!("{name} {} {value}", one_of(random, &["<", "<=", ">", ">=", "<>"])),
        8 => format!("{value} {} {name}", one_of(random, &["<", "<=", ">", ">=", "<>"])),
        9..12 => {
            let n = 1 + random.below(5);
            format!("{name} in ({})", list(random, n))
        }
        12 => format!("{name} not in ({})", list(random, 2)),
        13 => format!("{name} is {}null", one_of(random, &["", "", "not "])),
        14 => format!("{name} between {value} and {}", constant(random, at)),
        _ => format!("coalesce({name}, {}) = {}", stored(random, at), stored(random, at)),
    }
}

/// A query over the plain tables `p` and `q`, and whether its result is ordered.
fn query(random: &mut Random) -> (String, bool) {
    let name = COLUMNS[random.below(6) as usize].0;
    let sql = match random.below(8) {
        0..4 => format!(
            "select * from {} where {}",
            one_of(random, &["p", "q"]),
            condition(random, "", 2)
        ),
        4 => {
            let keys: Vec<&str> =
                (0..1 + random.below(3)).map(|_| COLUMNS[column(random)].0).collect();
            let desc = one_of(random, &["", " desc"]);
            let by: Vec<String> = keys.iter().map(|key| format!("{key}{desc}")).collect();
            let table = one_of(random, &["p", "q"]);
            let filter = format!("where {}", condition(random, "", 1));
            let filter = if random.below(3) == 0 { "" } else { &filter };
            let limit = one_of(random, &["", " limit 1", " limit 10", " limit 60"]);
            // Of rows with equal sort keys, only the keys are compared.
            let sql = format!(
                "select {} from {table} {filter} order by {}{limit}",
                keys.join(", "),
                by.join(", ")
            );
            return (sql, true);
        }
        5 => {
            let kind = one_of(random, &["join", "left join", "right join", "full join"]);
            let side = one_of(random, &["l.", "r."]);
            let on = format!("l.{name} = r.{name} and {}", condition(random, side, 1));
            let filter =
                format!("{} and {}", condition(random, "l.", 1), condition(random, "r.", 1));
            format!(
                "select l.id, r.id, l.{name}, l.c, r.c from p l {kind} q r on {on} where {filter}"
            )
        }
        6 => {
            let not = one_of(random, &["", "not "]);
            let inner = format!("select {name} from q where {}", condition(random, "", 1));
            format!(
                "select * from p where {name} {not}in ({inner}) and {}",
                condition(random, "", 1)
            )
        }
        _ => {
            let filter = condition(random, "", 1);
            format!(
                "select {name}, count(*), min(a), max(b), min(f), sum(d) from p where {filter} group by {name}"
            )
        }
    };
    (sql, false)
}

/// Runs a query in one of several ways.
fn ask(session: &mut Session, sql: &str, way: u64) -> Result<Vec<String>, ErrorKind> {
    let text = |result: QueryResult| -> Vec<String> {
        let rows = result.to_rows();
        // Zeros of either sign are equal, and either may represent a group.
        let line = |row: &Vec<_>| {
            row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|").replace("-0.0", "0.0")
        };
        rows.iter().map(line).collect()
    };
    let result = match way {
        0 => run(session, sql),
        1 => block_on(async { session.stream(sql, &[]).await?.collect().await }),
        _ => session.prepare(sql).and_then(|prepared| block_on(session.run(&prepared, &[]))),
    };
    result.map(text).map_err(|error| error.kind())
}

/// Tables `x` and `y`: like `p` and `q`, with keys and indexes.
fn indexed_table(random: &mut Random, table: &str, columns: &str) -> String {
    let mut parts =
        vec![columns.to_string(), one_of(random, &["primary key (id)", "unique (id)"]).to_string()];
    for n in 0..random.below(5) {
        let mut names: Vec<&str> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let name = COLUMNS[column(random)].0;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let names = names.join(", ");
        parts.push(match random.below(6) {
            0 => format!("unique key k{n} ({names}, id)"),
            1 => format!("key k{n} using btree ({names})"),
            _ => format!("key k{n} ({names})"),
        });
    }
    match random.below(4) {
        0 => parts.push(format!("sort key ({})", COLUMNS[column(random)].0)),
        1 => parts.push("shard key (id)".into()),
        _ => {}
    }
    format!("create table {table} ({})", parts.join(", "))
}

fn change(random: &mut Random) -> String {
    let (x, y) = (column(random), column(random));
    let filter = condition(random, "", 1);
    match random.below(3) {
        0 => format!("delete from {{t}} where {filter} and id % 3 = 1"),
        1 => format!(
            "update {{t}} set {} = {}, b = b + 1 where {filter}",
            COLUMNS[x].0,
            stored(random, x)
        ),
        _ => {
            let set = format!(
                "{} = {}, {} = {}",
                COLUMNS[x].0,
                stored(random, x),
                COLUMNS[y].0,
                stored(random, y)
            );
            format!("update {{t}} set {set} where id = {}", random.below(IDS))
        }
    }
}

fn round(seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let random = &mut random;
    let db = threaded(Options { threads: 1 + random.below(3) as usize, ..options() }).unwrap();
    let session = &mut db.session();
    let columns: Vec<String> =
        COLUMNS.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect();
    let columns = format!("id int not null, {}", columns.join(", "));
    let pairs = [("p", "x"), ("q", "y")];
    for (plain, indexed) in pairs {
        run(session, &format!("create table {plain} ({columns})")).unwrap();
        run(session, &indexed_table(random, indexed, &columns)).unwrap();
    }
    let mut next = 0;
    for _ in 0..2 + random.below(4) {
        for (plain, indexed) in pairs {
            let count = [10, 100, 300][random.below(3) as usize];
            let mut row = || {
                next += 1;
                let values: Vec<String> = (0..COLUMNS.len()).map(|at| stored(random, at)).collect();
                format!("({next}, {})", values.join(", "))
            };
            let values: Vec<String> = (0..count).map(|_| row()).collect();
            for table in [plain, indexed] {
                run(session, &format!("insert into {table} values {}", values.join(", "))).unwrap();
            }
            for (table, how) in [(plain, "flush"), (indexed, "flush"), (indexed, "full")] {
                if random.below(3) == 0 {
                    run(session, &format!("optimize table {table} {how}")).unwrap();
                }
            }
        }
        let in_transaction = random.below(2) == 0;
        if in_transaction {
            run(session, "begin").unwrap();
        }
        for _ in 0..random.below(6) {
            let (plain, indexed) = pairs[random.below(2) as usize];
            let sql = change(random);
            let mut done = |table: &str| {
                let result = run(session, &sql.replace("{t}", table));
                result.map(|result| result.rows_affected).map_err(|error| error.kind())
            };
            assert_eq!(done(plain), done(indexed), "seed {seed}: {sql}");
        }
        for _ in 0..25 {
            let (sql, in_order) = query(random);
            let other = sql
                .replace("from p", "from x")
                .replace("from q", "from y")
                .replace("join q", "join y");
            let (mut one, mut two) = (ask(session, &sql, 0), ask(session, &other, random.below(3)));
            if !in_order {
                one.iter_mut().chain(&mut two).for_each(|rows| rows.sort());
            }
            if one != two {
                let plan =
                    rows(session, &format!("profile {other}")).unwrap_or_default().join("\n");
                panic!("seed {seed}:\n{sql}\n{one:?}\n{other}\n{two:?}\n{plan}");
            }
        }
        if in_transaction {
            run(session, one_of(random, &["commit", "rollback"])).unwrap();
        }
    }
}

#[test]
fn indexes_and_keys_change_no_answer() {
    SEEDS.for_each(round);
}
