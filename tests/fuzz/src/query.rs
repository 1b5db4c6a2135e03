//! Queries generated from an input. They are typed, so that nearly all of them run. Those for
//! SQLite use only constructs with the same meaning in both dialects.
//!
//! Omitted for SQLite, because the dialects differ: division other than of integers, and division
//! by a possible zero (an error here, null there); `AVG` (a decimal here); arithmetic with sums
//! (decimals here, checked integers there); text beside numbers in any operator (an error here,
//! affinity there); truth values as numbers; letter case beyond ASCII; `LIKE` with a backslash (an
//! escape here); scalar subqueries with several rows (an error here, the first row there);
//! ungrouped columns beside aggregates (an error here); `LIMIT` without an order by all columns;
//! `ROUND`, and text from doubles; dates; `GLOB` with character classes; output column names in
//! `GROUP BY`.

use crate::input::Input;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Int,
    /// A text.
    Text,
    /// A double that is a multiple of a quarter.
    Real,
    /// A truth value.
    Bool,
    /// `DECIMAL(12,2)`; not in SQLite.
    Decimal,
    /// A date; not in SQLite.
    Date,
}

/// Columns of the two tables.
pub const TABLES: [(&str, &[(&str, Kind)]); 2] = [
    (
        "t",
        &[
            ("k", Kind::Int),
            ("a", Kind::Int),
            ("b", Kind::Int),
            ("s", Kind::Text),
            ("d", Kind::Real),
        ],
    ),
    ("u", &[("k", Kind::Int), ("a", Kind::Int), ("s", Kind::Text)]),
];

/// Columns of `t` that only our side has.
pub const OURS: [(&str, Kind); 3] = [("m", Kind::Decimal), ("y", Kind::Date), ("f", Kind::Bool)];

/// Texts in rows and literals.
pub const TEXTS: [&str; 9] = ["", "a", "b", "ab", "A", "ba", "aab", " a", "ä"];

/// Generates queries.
pub struct Maker<'a, 'b> {
    /// The source of decisions.
    pub input: &'a mut Input<'b>,
    /// Whether to use only constructs with the same meaning in SQLite.
    pub sqlite: bool,
    /// Columns in scope, as qualified names.
    pub scope: Vec<(String, Kind)>,
    /// Number of aliases used.
    aliases: usize,
    /// Nesting depth of subqueries.
    depth: usize,
}

impl<'a, 'b> Maker<'a, 'b> {
    /// Starts with an empty scope.
    pub fn new(input: &'a mut Input<'b>, sqlite: bool) -> Maker<'a, 'b> {
        Maker { input, sqlite, scope: Vec::new(), aliases: 0, depth: 0 }
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    /// A table under an alias, whose columns enter the scope.
    fn table(&mut self) -> String {
        let (name, columns) = self.input.pick(&TABLES);
        let alias = self.alias();
        self.scope
            .extend(columns.iter().map(|(column, kind)| (format!("{alias}.{column}"), *kind)));
        if name == "t" && !self.sqlite {
            self.scope
                .extend(OURS.iter().map(|(column, kind)| (format!("{alias}.{column}"), *kind)));
        }
        format!("{name} as {alias}")
    }

    /// A `FROM` clause, without the keyword.
    pub fn from(&mut self) -> String {
        let mut from = self.table();
        while self.input.one_in(3) && self.aliases < 5 {
            if self.input.one_in(6) && self.depth < 2 {
                let outer = std::mem::take(&mut self.scope);
                let (query, kinds) = self.query();
                self.scope = outer;
                let alias = self.alias();
                let names: Vec<String> = (0..kinds.len()).map(|n| format!("c{n}")).collect();
                self.scope.extend(
                    names.iter().zip(&kinds).map(|(name, kind)| (format!("{alias}.{name}"), *kind)),
                );
                let word = self.input.pick(&["join", "left join"]);
                from = format!("{from} {word} ({query}) as {alias} on {}", self.boolean(2));
                continue;
            }
            let word = self.input.pick(&[
                "join",
                "left join",
                "join",
                "left join",
                "right join",
                "full join",
                "cross join",
            ]);
            let own = self.scope.len();
            let table = self.table();
            let on = if word == "cross join" {
                String::new()
            } else {
                format!(" on {}", self.join_condition(own))
            };
            from = format!("{from} {word} {table}{on}");
        }
        from
    }

    /// Usually an equality between a new column and an earlier one.
    fn join_condition(&mut self, own: usize) -> String {
        if self.input.one_in(4) {
            return self.boolean(2);
        }
        let of = |kind: Kind, scope: &[(String, Kind)]| -> Vec<String> {
            scope.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name.clone()).collect()
        };
        let kind = self.input.pick(&[Kind::Int, Kind::Int, Kind::Text]);
        let (left, right) = (of(kind, &self.scope[..own]), of(kind, &self.scope[own..]));
        if left.is_empty() || right.is_empty() {
            return self.boolean(2);
        }
        let (l, r) = (self.input.below(left.len()), self.input.below(right.len()));
        let equal = format!("{} = {}", left[l], right[r]);
        if self.input.one_in(3) { format!("{equal} and {}", self.boolean(1)) } else { equal }
    }

    fn column(&mut self, kind: Kind) -> Option<String> {
        let of: Vec<&String> =
            self.scope.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name).collect();
        if of.is_empty() { None } else { Some(of[self.input.below(of.len())].clone()) }
    }

    fn kind(&mut self) -> Kind {
        let all =
            [Kind::Int, Kind::Text, Kind::Int, Kind::Real, Kind::Bool, Kind::Decimal, Kind::Date];
        self.input.pick(if self.sqlite { &all[..5] } else { &all })
    }

    /// An expression of a type.
    pub fn expression(&mut self, kind: Kind, depth: usize) -> String {
        match kind {
            Kind::Int => self.integer(depth),
            Kind::Text => self.text(depth),
            Kind::Real => self.real(depth),
            Kind::Bool => self.boolean(depth),
            Kind::Decimal => self.decimal(depth),
            Kind::Date => self.date(depth),
        }
    }

    fn shared(&mut self, kind: Kind, depth: usize) -> String {
        let (a, b) = (self.expression(kind, depth - 1), self.expression(kind, depth - 1));
        match self.input.below(4) {
            0 => format!("coalesce({a}, {b})"),
            1 => format!("nullif({a}, {b})"),
            _ => {
                let test = self.boolean(depth - 1);
                if self.input.one_in(3) {
                    format!("case when {test} then {a} end")
                } else {
                    format!("case when {test} then {a} else {b} end")
                }
            }
        }
    }

    fn integer_literal(&mut self) -> String {
        self.input
            .pick(&["0", "1", "2", "3", "-1", "-2", "7", "null", "1000000", "100"])
            .to_string()
    }

    fn integer(&mut self, depth: usize) -> String {
        if depth == 0 || self.input.one_in(3) {
            let literal = self.input.one_in(3);
            return match self.column(Kind::Int).filter(|_| !literal) {
                Some(column) => column,
                None => self.integer_literal(),
            };
        }
        let a = self.integer(depth - 1);
        match self.input.below(11) {
            0 => format!("({a} + {})", self.integer(depth - 1)),
            1 => format!("({a} - {})", self.integer(depth - 1)),
            2 => format!("({a} * {})", self.input.pick(&["2", "-3", "7"])),
            3 => format!("({a} % {})", self.input.pick(&["2", "3", "-5"])),
            4 => format!("({a} / {})", self.input.pick(&["2", "-3", "10"])),
            5 => format!("abs({a})"),
            6 => format!("length({})", self.text(depth - 1)),
            7 => format!("(- {a})"),
            8 if self.depth < 2 => self.scalar_subquery(),
            _ => self.shared(Kind::Int, depth),
        }
    }

    /// A scalar subquery with one row, from an aggregate.
    fn scalar_subquery(&mut self) -> String {
        let outer = self.scope.len();
        self.depth += 1;
        let table = self.table();
        // An aggregate over outer columns only would belong to the outer query.
        let hidden: Vec<(String, Kind)> = self.scope.drain(..outer).collect();
        let value = self.integer(1);
        self.scope.splice(0..0, hidden);
        let test = self.boolean(1);
        let aggregate = self.input.pick(&["max", "min", "count"]);
        self.scope.truncate(outer);
        self.depth -= 1;
        format!("(select {aggregate}({value}) from {table} where {test})")
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 || self.input.one_in(3) {
            let literal = self.input.one_in(3);
            return match self.column(Kind::Text).filter(|_| !literal) {
                Some(column) => column,
                None => format!("'{}'", self.input.pick(&TEXTS)),
            };
        }
        let a = self.text(depth - 1);
        match self.input.below(8) {
            0 | 1 => format!("({a} || {})", self.text(depth - 1)),
            2 => format!("substr({a}, {}, {})", 1 + self.input.below(3), self.input.below(4)),
            3 => format!("replace({a}, 'a', {})", self.text(depth - 1)),
            4 => format!("trim({a})"),
            5 => format!("cast({} as text)", self.integer(depth - 1)),
            6 if !self.sqlite => {
                format!("{}({a})", self.input.pick(&["upper", "lower", "reverse", "hex", "md5"]))
            }
            _ => self.shared(Kind::Text, depth),
        }
    }

    fn real(&mut self, depth: usize) -> String {
        if depth == 0 || self.input.one_in(3) {
            let literal = self.input.one_in(3);
            return match self.column(Kind::Real).filter(|_| !literal) {
                Some(column) => column,
                None => {
                    self.input.pick(&["0.25e0", "1.5e0", "-2e0", "0e0", "100.75e0"]).to_string()
                }
            };
        }
        let a = self.real(depth - 1);
        match self.input.below(6) {
            0 => format!("({a} + {})", self.real(depth - 1)),
            1 => format!("({a} - {})", self.real(depth - 1)),
            2 => format!("({a} * {})", self.input.pick(&["2e0", "-0.5e0", "4"])),
            3 => format!("abs({a})"),
            4 => format!("({a} + {})", self.integer(depth - 1)),
            _ => self.shared(Kind::Real, depth),
        }
    }

    fn decimal(&mut self, depth: usize) -> String {
        if depth == 0 || self.input.one_in(3) {
            let literal = self.input.one_in(3);
            return match self.column(Kind::Decimal).filter(|_| !literal) {
                Some(column) => column,
                None => self
                    .input
                    .pick(&["0.01", "1.50", "-2.25", "0.00", "100.0", "99999999.99"])
                    .to_string(),
            };
        }
        let a = self.decimal(depth - 1);
        match self.input.below(6) {
            0 => format!("({a} + {})", self.decimal(depth - 1)),
            1 => format!("({a} * {})", self.input.pick(&["2", "-0.5", "0.333"])),
            2 => format!("({a} / {})", self.input.pick(&["2", "-0.5", "3.0"])),
            3 => format!("round({a}, {})", self.input.below(4)),
            4 => format!("cast({} as decimal(20,2))", self.integer(depth - 1)),
            _ => self.shared(Kind::Decimal, depth),
        }
    }

    fn date(&mut self, depth: usize) -> String {
        if depth == 0 || self.input.one_in(3) {
            let literal = self.input.one_in(3);
            return match self.column(Kind::Date).filter(|_| !literal) {
                Some(column) => column,
                None => self
                    .input
                    .pick(&["date '2024-02-29'", "date '1969-12-31'", "date '2000-01-01'"])
                    .to_string(),
            };
        }
        let a = self.date(depth - 1);
        match self.input.below(4) {
            0 => format!("({a} + interval '{}' month)", self.input.below(30)),
            1 => format!("({a} - {})", self.input.below(400)),
            2 => format!("last_day({a})"),
            _ => self.shared(Kind::Date, depth),
        }
    }

    /// A condition.
    pub fn boolean(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.comparison(0);
        }
        match self.input.below(12) {
            0 => format!("({} and {})", self.boolean(depth - 1), self.boolean(depth - 1)),
            1 => format!("({} or {})", self.boolean(depth - 1), self.boolean(depth - 1)),
            2 => format!("(not {})", self.boolean(depth - 1)),
            3 => {
                let kind = self.kind();
                let kind = if kind == Kind::Bool { Kind::Int } else { kind };
                let word = self.input.pick(&["is null", "is not null"]);
                format!("({} {word})", self.expression(kind, depth - 1))
            }
            4 => {
                let not = self.input.pick(&["", "not "]);
                let literals: Vec<String> =
                    (0..1 + self.input.below(4)).map(|_| self.integer_literal()).collect();
                format!("({} {not}in ({}))", self.integer(depth - 1), literals.join(", "))
            }
            5 => {
                let (a, low, high) = (self.integer(depth - 1), self.integer(0), self.integer(0));
                format!("({a} {}between {low} and {high})", self.input.pick(&["", "not "]))
            }
            6 => {
                let pattern =
                    self.input.pick(&["a%", "%a", "%a%", "_", "", "%", "a_", "%b_%", "ab"]);
                format!(
                    "({} {}like '{pattern}')",
                    self.text(depth - 1),
                    self.input.pick(&["", "not "])
                )
            }
            7 if self.depth < 2 => self.membership(),
            8 => {
                let word = self.input.pick(&["is distinct from", "is not distinct from"]);
                format!("({} {word} {})", self.integer(depth - 1), self.integer(depth - 1))
            }
            9 if !self.sqlite => match self.column(Kind::Bool) {
                Some(column) => column,
                None => self.comparison(depth - 1),
            },
            _ => self.comparison(depth - 1),
        }
    }

    fn comparison(&mut self, depth: usize) -> String {
        let kind = self.kind();
        let kind = if kind == Kind::Bool { Kind::Int } else { kind };
        let op = self.input.pick(&["=", "<", ">", "<=", ">=", "<>"]);
        format!("({} {op} {})", self.expression(kind, depth), self.expression(kind, depth))
    }

    /// `IN`, or `EXISTS` with a subquery.
    fn membership(&mut self) -> String {
        let value = self.integer(1);
        let outer = self.scope.len();
        self.depth += 1;
        let table = self.table();
        // Half of them are uncorrelated.
        let hidden: Vec<(String, Kind)> =
            if self.input.one_in(2) { self.scope.drain(..outer).collect() } else { Vec::new() };
        let (column, test) = (self.integer(1), self.boolean(1));
        if hidden.is_empty() {
            self.scope.truncate(outer);
        } else {
            self.scope = hidden;
        }
        self.depth -= 1;
        let not = self.input.pick(&["", "not "]);
        match self.input.below(2) {
            0 => format!("({value} {not}in (select {column} from {table} where {test}))"),
            _ => format!("({not}exists (select 1 from {table} where {test}))"),
        }
    }

    /// A query and the types of its columns.
    pub fn query(&mut self) -> (String, Vec<Kind>) {
        self.depth += 1;
        let (mut text, kinds) = self.simple(None);
        let choice = self.input.byte() % 8;
        if choice == 7 {
            let word = self.input.pick(&["union", "union all", "intersect", "except"]);
            self.scope.clear();
            let (other, _) = self.simple(Some(&kinds));
            text = format!("{text} {word} {other}");
        }
        let made =
            if choice == 6 && self.depth == 1 { self.with(&text, &kinds) } else { (text, kinds) };
        self.depth -= 1;
        made
    }

    /// A query over a CTE that is used once or twice, or over a recursive sequence of numbers.
    fn with(&mut self, text: &str, kinds: &[Kind]) -> (String, Vec<Kind>) {
        self.scope.clear();
        if self.input.one_in(5) {
            let (step, most) = (1 + self.input.below(3), self.input.below(9));
            let union = self.input.pick(&["union", "union all"]);
            self.scope.push(("n.c0".into(), Kind::Int));
            let test = self.boolean(1);
            let text = format!(
                "with recursive n (c0) as (select k from u {union} select c0 + {step} from n where c0 < {most}) select c0 as c0, count(*) as c1 from n where {test} group by c0"
            );
            return (text, vec![Kind::Int, Kind::Int]);
        }
        let uses = 1 + self.input.below(2);
        let mut from = Vec::new();
        for _ in 0..uses {
            let alias = self.alias();
            self.scope.extend(
                kinds.iter().enumerate().map(|(at, kind)| (format!("{alias}.c{at}"), *kind)),
            );
            from.push(format!("w as {alias}"));
        }
        let from = match from.as_slice() {
            [left, right] => {
                let word = self.input.pick(&["join", "left join", "full join"]);
                let on = format!("{} = {}", self.scope[0].0, self.scope[kinds.len()].0);
                format!("{left} {word} {right} on {on}")
            }
            _ => from.concat(),
        };
        let filter = format!(" where {}", self.boolean(2));
        let (select, kinds) = self.grouped(&from, &filter);
        (format!("with w as ({text}) {select}"), kinds)
    }

    fn simple(&mut self, wanted: Option<&[Kind]>) -> (String, Vec<Kind>) {
        self.scope.clear();
        let from = self.from();
        let filter = if self.input.one_in(4) {
            String::new()
        } else {
            format!(" where {}", self.boolean(3))
        };
        match (wanted, self.input.below(5)) {
            (None, 0 | 1) => self.grouped(&from, &filter),
            (None, 2) => self.windowed(&from, &filter),
            _ => {
                let kinds: Vec<Kind> = match wanted {
                    Some(kinds) => kinds.to_vec(),
                    None => (0..1 + self.input.below(3)).map(|_| self.kind()).collect(),
                };
                let columns: Vec<String> =
                    kinds.iter().map(|kind| self.expression(*kind, 2)).collect();
                let distinct = if self.input.one_in(4) { "distinct " } else { "" };
                let columns = named(&columns);
                (format!("select {distinct}{columns} from {from}{filter}"), kinds)
            }
        }
    }

    fn aggregate(&mut self) -> (String, Kind) {
        let filter = if self.input.one_in(6) {
            format!(" filter (where {})", self.boolean(1))
        } else {
            String::new()
        };
        match self.input.below(7) {
            0 => (format!("count(*){filter}"), Kind::Int),
            1 => {
                let kind = self.kind();
                (format!("count({}){filter}", self.expression(kind, 1)), Kind::Int)
            }
            2 => (format!("count(distinct {}){filter}", self.integer(1)), Kind::Int),
            3 => (format!("sum({}){filter}", self.integer(1)), Kind::Int),
            4 => (format!("sum({}){filter}", self.real(1)), Kind::Real),
            _ => {
                let kind = self.input.pick(&[Kind::Int, Kind::Text, Kind::Real]);
                let name = self.input.pick(&["min", "max"]);
                (format!("{name}({}){filter}", self.expression(kind, 1)), kind)
            }
        }
    }

    fn grouped(&mut self, from: &str, filter: &str) -> (String, Vec<Kind>) {
        let keys: Vec<(String, Kind)> =
            (0..self.input.below(3)).filter_map(|_| self.key()).collect();
        let aggregates: Vec<(String, Kind)> =
            (0..1 + self.input.below(3)).map(|_| self.aggregate()).collect();
        let all = keys.iter().chain(&aggregates);
        let (columns, kinds): (Vec<String>, Vec<Kind>) = all.cloned().unzip();
        let mut text = format!("select {} from {from}{filter}", named(&columns));
        if !keys.is_empty() {
            let keys: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
            text = format!("{text} group by {}", keys.join(", "));
            if self.input.one_in(4) {
                text = format!(
                    "{text} having count(*) {} {}",
                    self.input.pick(&[">", "<=", "="]),
                    self.input.below(4)
                );
            }
        }
        (text, kinds)
    }

    /// A group key; never a literal, which would be a position.
    fn key(&mut self) -> Option<(String, Kind)> {
        let kind = self.input.pick(&[Kind::Int, Kind::Text, Kind::Real]);
        let column = self.column(kind)?;
        Some(match (kind, self.input.below(4)) {
            (Kind::Int, 0) => (format!("({column} % 3)"), Kind::Int),
            (Kind::Int, 1) => (format!("({column} is null)"), Kind::Bool),
            (Kind::Text, 0) => (format!("length({column})"), Kind::Int),
            _ => (column, kind),
        })
    }

    /// A window over rows with a total order, by the key of the first table.
    fn windowed(&mut self, from: &str, filter: &str) -> (String, Vec<Kind>) {
        if from.contains("join") {
            return self.grouped(from, filter);
        }
        let key = self.scope[0].0.clone();
        let partition = match self.key() {
            Some((key, _)) if self.input.one_in(2) => format!("partition by {key} "),
            _ => String::new(),
        };
        let value = self.integer(1);
        let direction = self.input.pick(&["", " desc"]);
        let (before, after) = (self.input.below(3), self.input.below(3));
        let window = match self.input.below(7) {
            0 => format!("row_number() over ({partition}order by {key}{direction})"),
            1 => format!("lag({value}) over ({partition}order by {key}{direction})"),
            2 => format!("lead({value}, 2) over ({partition}order by {key}{direction})"),
            3 => format!(
                "sum({value}) over ({partition}order by {key}{direction} rows between {before} preceding and {after} following)"
            ),
            4 => format!("dense_rank() over ({partition}order by {value}{direction})"),
            5 => format!("count({value}) over ({partition}order by {value}{direction})"),
            _ => format!("max({value}) over ({partition}order by {key}{direction})"),
        };
        let columns = named(&[key, window]);
        (format!("select {columns} from {from}{filter}"), vec![Kind::Int, Kind::Int])
    }
}

/// Names the columns c0, c1, ….
fn named(columns: &[String]) -> String {
    let named: Vec<String> =
        columns.iter().enumerate().map(|(at, column)| format!("{column} as c{at}")).collect();
    named.join(", ")
}
