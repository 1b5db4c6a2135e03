//! Compares the contents of a database with the expected results of its writers' commits.

use crate::many::marked;
use crate::model::{ACCOUNTS, BALANCE, Item, Model, Transfer, text};
use nacre_native::block_on;
use nacredb::{Database, ErrorKind, Host, Options, Result, Session, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Known facts about a folder.
pub struct Promises {
    /// Whether the tables and accounts exist.
    pub ready: bool,
    /// For each thread, everything known to be committed.
    pub models: Vec<Model>,
    /// For each thread, how many more of its transactions may be there: the one that was in progress,
    /// and those that were committed but need not have survived.
    pub further: Vec<i64>,
}

impl Promises {
    /// Nothing is known yet.
    pub fn new(threads: u64, large: i64) -> Promises {
        Promises {
            ready: false,
            models: (0..threads as i64).map(|n| Model::new(n, large)).collect(),
            further: vec![1; threads as usize],
        }
    }

    /// A thread has committed its next transaction, which must have this number.
    pub fn committed(&mut self, thread: usize, seq: i64) -> std::result::Result<(), String> {
        let model = self.models.get_mut(thread).ok_or(format!("there is no thread {thread}"))?;
        if model.seq != seq {
            let next = model.seq;
            return Err(format!(
                "thread {thread} committed transaction {seq}; it had to be {next}"
            ));
        }
        let step = model.next_step();
        model.apply(&step);
        Ok(())
    }
}

/// The findings for a folder.
#[derive(Default)]
pub struct Findings {
    /// Number of committed changes that are missing.
    pub lost: u64,
    /// Number of changes that were never committed.
    pub phantom: u64,
    /// The first findings of each kind, and all others, as text.
    pub messages: Vec<String>,
}

impl Findings {
    fn lost(&mut self, message: String) {
        self.lost += 1;
        self.say(message);
    }

    fn phantom(&mut self, message: String) {
        self.phantom += 1;
        self.say(message);
    }

    fn say(&mut self, message: String) {
        if self.messages.len() < 20 {
            self.messages.push(message);
        }
    }

    /// Whether there are no findings.
    pub fn sound(&self) -> bool {
        self.lost == 0 && self.phantom == 0 && self.messages.is_empty()
    }

    /// Compares expected rows with those found.
    fn compare<K: Ord + Debug, V: PartialEq + Debug>(
        &mut self,
        table: &str,
        expected: &BTreeMap<K, V>,
        found: &BTreeMap<K, V>,
    ) {
        for (key, row) in expected {
            match found.get(key) {
                None => self.lost(format!("{table}: row {key:?} is missing")),
                Some(other) if other != row => {
                    self.lost(format!("{table}: row {key:?} is {other:?}, not {row:?}"))
                }
                Some(_) => {}
            }
        }
        for key in found.keys().filter(|key| !expected.contains_key(key)) {
            self.phantom(format!("{table}: row {key:?} is there and should not be"));
        }
    }
}

type Rows<K, V> = BTreeMap<K, V>;

/// The contents of the whole database.
#[derive(Default)]
struct Found {
    accounts: Rows<i64, i64>,
    journal: Rows<(i64, i64), String>,
    items: Rows<(i64, i64), Item>,
    transfers: Rows<(i64, i64), Transfer>,
    bulk: Rows<(i64, i64, i64), String>,
    many: Rows<(i64, i64), i64>,
}

/// Opens the database, compares it with what is known, and updates what is known from its contents.
/// Closes the database if `close` is set, otherwise just drops it.
pub fn verify(
    host: Host,
    options: Options,
    promises: &mut Promises,
    close: bool,
) -> Result<Findings> {
    let db = block_on(Database::open(host, options))?;
    let mut findings = Findings::default();
    for complaint in db.check()? {
        findings.say(format!("check: {complaint}"));
    }
    let mut session = db.session();
    let found = match read(&mut session, &mut findings) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if promises.ready {
                findings.lost(format!("a table was committed and is not there: {error}"));
                return Ok(findings);
            }
            Found::default()
        }
        other => other?,
    };

    for (model, further) in promises.models.iter_mut().zip(&promises.further) {
        advance(model, *further, &found, &mut findings);
    }
    compare(&found, promises, &mut findings);
    point_reads(&mut session, promises, &mut findings)?;
    drop(session);
    if close {
        block_on(db.close())?;
    }
    Ok(findings)
}

/// Determines which transactions of a thread exist: all that are known, and at most `further` next ones.
fn advance(model: &mut Model, further: i64, found: &Found, findings: &mut Findings) {
    let thread = model.thread;
    let journal =
        found.journal.range((thread, i64::MIN)..=(thread, i64::MAX)).map(|((_, seq), _)| *seq);
    let bulk = found
        .bulk
        .range((thread, i64::MIN, 0)..=(thread, i64::MAX, i64::MAX))
        .map(|((_, seq, _), _)| *seq);
    let many = found.many.range((thread, i64::MIN)..=(thread, i64::MAX)).map(|((_, id), _)| *id);
    let present: BTreeSet<i64> = journal.chain(bulk).chain(marked(many)).collect();
    for seq in (0..model.seq).filter(|seq| !present.contains(seq)) {
        findings.lost(format!("thread {thread}: transaction {seq} was committed and is not there"));
    }
    let end = model.seq + further;
    for seq in present.range(end..) {
        findings.phantom(format!("thread {thread}: transaction {seq} is there, of {end} at most"));
    }
    while model.seq < end && present.contains(&model.seq) {
        let step = model.next_step();
        model.apply(&step);
    }
    // Those of a thread are committed one after another.
    for seq in present.range(model.seq..end) {
        findings
            .lost(format!("thread {thread}: transaction {} is not there, but {seq} is", model.seq));
    }
}

fn compare(found: &Found, promises: &Promises, findings: &mut Findings) {
    let mut expected = Found::default();
    if promises.ready || !found.accounts.is_empty() {
        expected.accounts = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    }
    for model in &promises.models {
        let thread = model.thread;
        expected
            .journal
            .extend(model.journal.iter().map(|(seq, text)| ((thread, *seq), text.clone())));
        expected.items.extend(model.items.iter().map(|(id, item)| ((thread, *id), item.clone())));
        expected
            .transfers
            .extend(model.transfers.iter().map(|(seq, t)| ((thread, *seq), t.clone())));
        for (seq, rows) in &model.bulk {
            expected.bulk.extend((0..*rows).map(|n| ((thread, *seq, n), text(thread, *seq, n))));
        }
        expected.many.extend(model.many.iter().map(|(id, value)| ((thread, *id), *value)));
        for transfer in model.transfers.values() {
            for (id, add) in
                [(transfer.source, -transfer.amount), (transfer.target, transfer.amount)]
            {
                *expected.accounts.entry(id).or_default() += add;
            }
        }
    }
    findings.compare("accounts", &expected.accounts, &found.accounts);
    findings.compare("journal", &expected.journal, &found.journal);
    findings.compare("items", &expected.items, &found.items);
    findings.compare("transfers", &expected.transfers, &found.transfers);
    findings.compare("bulk", &expected.bulk, &found.bulk);
    findings.compare("many", &expected.many, &found.many);
}

/// Reads every table. A duplicate key counts as a phantom.
fn read(session: &mut Session, findings: &mut Findings) -> Result<Found> {
    let mut found = Found::default();
    let mut twice = |table: &str, old: bool, row: &[Value]| {
        if old {
            findings.phantom(format!("{table}: key of {row:?} comes twice"));
        }
    };
    for row in rows(session, "select id, balance from accounts")? {
        let old = found.accounts.insert(int(&row[0]), int(&row[1]));
        twice("accounts", old.is_some(), &row);
    }
    for row in rows(session, "select thread, seq, payload from journal")? {
        let old = found.journal.insert((int(&row[0]), int(&row[1])), string(&row[2]));
        twice("journal", old.is_some(), &row);
    }
    for row in rows(session, "select thread, id, value, note from items")? {
        let item = Item { value: int(&row[2]), note: string(&row[3]) };
        let old = found.items.insert((int(&row[0]), int(&row[1])), item);
        twice("items", old.is_some(), &row);
    }
    for row in rows(session, "select thread, seq, source, target, amount from transfers")? {
        let transfer =
            Transfer { source: int(&row[2]), target: int(&row[3]), amount: int(&row[4]) };
        let old = found.transfers.insert((int(&row[0]), int(&row[1])), transfer);
        twice("transfers", old.is_some(), &row);
    }
    for row in rows(session, "select thread, seq, n, text from bulk")? {
        let old = found.bulk.insert((int(&row[0]), int(&row[1]), int(&row[2])), string(&row[3]));
        twice("bulk", old.is_some(), &row);
    }
    for row in rows(session, "select thread, id, value from many")? {
        let old = found.many.insert((int(&row[0]), int(&row[1])), int(&row[2]));
        twice("many", old.is_some(), &row);
    }
    Ok(found)
}

/// Reads the same rows by key: a scan and a lookup must agree, and deleted rows must not be found.
fn point_reads(session: &mut Session, promises: &Promises, findings: &mut Findings) -> Result<()> {
    if !promises.ready {
        return Ok(());
    }
    let point = session.prepare("select value, note from items where thread = ? and id = ?")?;
    for model in &promises.models {
        let last = model.items.keys().next_back().copied().unwrap_or(0);
        for id in (0..=last).step_by(1 + last as usize / 200) {
            let result =
                block_on(session.run(&point, &[Value::Int(model.thread), Value::Int(id)]))?
                    .to_rows();
            let found =
                result.first().map(|row| Item { value: int(&row[0]), note: string(&row[1]) });
            let key = (model.thread, id);
            match (model.items.get(&id), &found) {
                (None, None) => {}
                (Some(item), Some(other)) if item == other && result.len() == 1 => {}
                (Some(item), _) => {
                    findings.lost(format!("items: by key, row {key:?} is {result:?}, not {item:?}"))
                }
                (None, _) => findings.phantom(format!("items: by key, row {key:?} is {result:?}")),
            }
        }
    }
    Ok(())
}

fn rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<Value>>> {
    Ok(block_on(session.execute(sql, &[]))?.to_rows())
}

fn int(value: &Value) -> i64 {
    if let Value::Int(v) = value { *v } else { i64::MIN }
}

fn string(value: &Value) -> String {
    if let Value::Text(v) = value { v.clone() } else { format!("{value:?}") }
}
