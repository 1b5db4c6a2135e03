//! The encoding of a table's rules: defaults that are expressions, generated and identity columns,
//! checks, and foreign keys.

use nacre_types::bytes::{Reader, Write};
use nacre_types::{
    CheckConstraint, ColumnRule, Error, ForeignKey, ReferentialAction, Result, TableId,
    TableSchema, limits,
};

/// The version of the encoding.
const VERSION: u64 = 2;
/// The version without foreign keys, in which the rules of tables that have none are written.
const WITHOUT_REFERENCES: u64 = 1;

/// What happens to rows that refer to a key, by its number. The numbers are stored and never changed.
const ACTIONS: [ReferentialAction; 5] = [
    ReferentialAction::NoAction,
    ReferentialAction::Restrict,
    ReferentialAction::Cascade,
    ReferentialAction::SetNull,
    ReferentialAction::SetDefault,
];

/// The first byte of a column's rule. The numbers are stored and never reused.
mod tag {
    pub const DEFAULT: u8 = 1;
    pub const VIRTUAL: u8 = 2;
    pub const STORED: u8 = 3;
    pub const IDENTITY: u8 = 4;
    pub const IDENTITY_ALWAYS: u8 = 5;
}

/// The rules of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// By column id.
    pub columns: Vec<(u32, ColumnRule)>,
    pub checks: Vec<CheckConstraint>,
    /// The value that the counter of the identity column gives next, at least.
    pub next_identity: i64,
    pub foreign_keys: Vec<ForeignKey>,
    /// The other tables that refer to the table.
    pub referenced_by: Vec<TableId>,
}

impl Rules {
    /// The rules of a table whose counter gives this value next; `None` if it has none.
    pub fn of(schema: &TableSchema, next_identity: i64) -> Option<Rules> {
        let ruled = schema.columns.iter().filter(|c| c.rule != ColumnRule::Constant);
        let columns = ruled.map(|column| (column.id, column.rule.clone())).collect();
        let next_identity = next_identity.max(schema.next_identity);
        let rules = Rules {
            columns,
            checks: schema.checks.clone(),
            next_identity,
            foreign_keys: schema.foreign_keys.clone(),
            referenced_by: schema.referenced_by.clone(),
        };
        (schema.has_rules() || schema.has_references()).then_some(rules)
    }

    /// Returns the schema with these rules.
    pub fn put_into(self, mut schema: TableSchema) -> Result<TableSchema> {
        for (id, rule) in self.columns {
            let Some(at) = schema.column_position(id) else {
                let name = &schema.name;
                return Err(Error::corrupt(format!("table {name}: a rule of no column")));
            };
            schema.columns[at].rule = rule;
        }
        (schema.checks, schema.next_identity) = (self.checks, self.next_identity);
        if self.foreign_keys.iter().any(|key| schema.positions(&key.columns).is_none()) {
            let name = &schema.name;
            return Err(Error::corrupt(format!("table {name}: a foreign key of no column")));
        }
        (schema.foreign_keys, schema.referenced_by) = (self.foreign_keys, self.referenced_by);
        Ok(schema)
    }
}

pub(crate) fn put_rules(out: &mut Vec<u8>, rules: &Rules) {
    let start = out.len();
    debug_assert!(rules.columns.iter().is_sorted_by(|a, b| a.0 != b.0), "a column has two rules");
    let refers = !rules.foreign_keys.is_empty() || !rules.referenced_by.is_empty();
    out.put_varint(if refers { VERSION } else { WITHOUT_REFERENCES });
    out.put_varint(rules.columns.len() as u64);
    for (id, rule) in &rules.columns {
        out.put_varint(*id as u64);
        put_rule(out, rule);
    }
    debug_assert!(rules.checks.len() <= limits::MAX_CHECKS, "{} checks", rules.checks.len());
    out.put_varint(rules.checks.len() as u64);
    for check in &rules.checks {
        out.put_bytes(check.name.as_bytes());
        out.put_bytes(check.expression.as_bytes());
    }
    put_counter(out, rules.next_identity);
    if refers {
        debug_assert!(
            rules.referenced_by.is_sorted_by(|a, b| a < b),
            "a table is listed twice among those that refer to one"
        );
        debug_assert!(
            rules.foreign_keys.len() <= limits::MAX_FOREIGN_KEYS,
            "{} foreign keys",
            rules.foreign_keys.len()
        );
        out.put_varint(rules.foreign_keys.len() as u64);
        rules.foreign_keys.iter().for_each(|key| put_foreign_key(out, key));
        out.put_varint(rules.referenced_by.len() as u64);
        rules.referenced_by.iter().for_each(|table| out.put_varint(u64::from(*table)));
    }
    debug_assert!(
        read_rules(&mut Reader::new(&out[start..], "rules")).is_ok_and(|read| read == *rules),
        "the rules of a table do not read back"
    );
}

/// Writes the value of a counter, which is never negative.
pub(super) fn put_counter(out: &mut Vec<u8>, next: i64) {
    debug_assert!(next >= 0, "a counter gives {next} next");
    out.put_varint(next.unsigned_abs());
}

pub(super) fn read_counter(reader: &mut Reader<'_>) -> Result<i64> {
    i64::try_from(reader.varint()?).map_err(|_| reader.corrupt("value of a counter"))
}

fn read_table(reader: &mut Reader<'_>) -> Result<TableId> {
    TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id of a foreign key"))
}

fn put_foreign_key(out: &mut Vec<u8>, key: &ForeignKey) {
    debug_assert!(
        key.columns.len() == key.parent_columns.len(),
        "foreign key {} has {} columns for {}",
        key.name,
        key.columns.len(),
        key.parent_columns.len()
    );
    out.put_bytes(key.name.as_bytes());
    out.put_varint(u64::from(key.parent));
    out.put_varint(key.columns.len() as u64);
    for (column, parent) in key.columns.iter().zip(&key.parent_columns) {
        out.put_varint(u64::from(*column));
        out.put_varint(u64::from(*parent));
    }
    for action in [key.on_delete, key.on_update] {
        out.put_u8(ACTIONS.iter().position(|known| *known == action).unwrap_or(0) as u8);
    }
    out.put_u8(u8::from(key.is_deferred));
}

fn read_foreign_key(reader: &mut Reader<'_>) -> Result<ForeignKey> {
    let name = reader.text()?.to_string();
    let parent = read_table(reader)?;
    let (mut columns, mut parent_columns) = (Vec::new(), Vec::new());
    for _ in 0..reader.count(limits::MAX_INDEX_COLUMNS)? {
        columns.push(reader.count(limits::MAX_COLUMN_ID as usize)? as u32);
        parent_columns.push(reader.count(limits::MAX_COLUMN_ID as usize)? as u32);
    }
    let action = |reader: &mut Reader<'_>| {
        let number = usize::from(reader.u8()?);
        ACTIONS.get(number).copied().ok_or_else(|| reader.corrupt("unknown referential action"))
    };
    let (on_delete, on_update) = (action(reader)?, action(reader)?);
    debug_assert!(columns.len() == parent_columns.len(), "columns refer to others one by one");
    let is_deferred = reader.u8()? != 0;
    Ok(ForeignKey { name, columns, parent, parent_columns, on_delete, on_update, is_deferred })
}

fn put_rule(out: &mut Vec<u8>, rule: &ColumnRule) {
    let (tag, expression) = match rule {
        ColumnRule::Default(expression) => (tag::DEFAULT, &**expression),
        ColumnRule::Generated { expression, stored: false } => (tag::VIRTUAL, &**expression),
        ColumnRule::Generated { expression, stored: true } => (tag::STORED, &**expression),
        ColumnRule::Identity { always: false } => (tag::IDENTITY, ""),
        ColumnRule::Identity { always: true } => (tag::IDENTITY_ALWAYS, ""),
        // Computed columns are stored with the indexes.
        ColumnRule::Constant | ColumnRule::Computed { .. } => (tag::DEFAULT, "NULL"),
    };
    debug_assert!(*rule != ColumnRule::Constant, "a column without a rule is stored with one");
    out.put_u8(tag);
    out.put_bytes(expression.as_bytes());
}

pub(crate) fn read_rules(reader: &mut Reader<'_>) -> Result<Rules> {
    let version = reader.varint()?;
    if !(WITHOUT_REFERENCES..=VERSION).contains(&version) {
        return Err(Error::unsupported(format!(
            "rules of a table in version {version}; this build reads version {VERSION}"
        )));
    }
    let count = reader.count(limits::MAX_COLUMNS)?;
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let id = reader.count(limits::MAX_COLUMN_ID as usize)? as u32;
        columns.push((id, read_rule(reader)?));
    }
    let count = reader.count(limits::MAX_CHECKS)?;
    let mut checks = Vec::with_capacity(count);
    for _ in 0..count {
        let name = reader.text()?.to_string();
        checks.push(CheckConstraint { name, expression: reader.text()?.to_string() });
    }
    let next_identity = read_counter(reader)?;
    let (mut foreign_keys, mut referenced_by) = (Vec::new(), Vec::new());
    if version == VERSION {
        for _ in 0..reader.count(limits::MAX_FOREIGN_KEYS)? {
            foreign_keys.push(read_foreign_key(reader)?);
        }
        for _ in 0..reader.count(limits::MAX_REFERENCES)? {
            referenced_by.push(read_table(reader)?);
        }
    }
    Ok(Rules { columns, checks, next_identity, foreign_keys, referenced_by })
}

fn read_rule(reader: &mut Reader<'_>) -> Result<ColumnRule> {
    let tag = reader.u8()?;
    let expression = reader.text()?.to_string();
    Ok(match tag {
        tag::DEFAULT => ColumnRule::Default(expression),
        tag::VIRTUAL => ColumnRule::Generated { expression, stored: false },
        tag::STORED => ColumnRule::Generated { expression, stored: true },
        tag::IDENTITY => ColumnRule::Identity { always: false },
        tag::IDENTITY_ALWAYS => ColumnRule::Identity { always: true },
        _ => return Err(reader.corrupt("unknown rule of a column")),
    })
}
