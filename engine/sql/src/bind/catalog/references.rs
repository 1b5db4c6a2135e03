//! Foreign keys as they are shown.

use crate::bind::binder::Binder;
use nacre_types::{ForeignKey, ReferentialAction, TableSchema};
use std::sync::Arc;

/// The names of a foreign key.
pub(super) struct Described {
    /// The table that it refers to.
    pub parent: String,
    pub columns: Vec<String>,
    /// The columns that these refer to.
    pub referred: Vec<String>,
}

impl Binder<'_> {
    /// The names of a foreign key of a table.
    pub(super) fn described(&self, table: &Arc<TableSchema>, key: &ForeignKey) -> Described {
        let id = table.parent_of(key);
        let parent = match id == table.id {
            true => Some(table.clone()),
            false => self.sorted_tables().into_iter().find(|known| known.id == id),
        };
        let names = |schema: &TableSchema, ids: &[u32]| -> Vec<String> {
            let name = |id: &u32| Some(schema.columns[schema.column_position(*id)?].name.clone());
            ids.iter().filter_map(name).collect()
        };
        Described {
            columns: names(table, &key.columns),
            referred: parent.as_ref().map_or(Vec::new(), |p| names(p, &key.parent_columns)),
            parent: parent.map_or(String::new(), |parent| parent.name.clone()),
        }
    }

    /// A foreign key as `CREATE TABLE` declares it.
    pub(super) fn declaration(&self, table: &Arc<TableSchema>, key: &ForeignKey) -> String {
        let Described { parent, columns, referred } = self.described(table, key);
        let list =
            |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let mut out = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
            quoted(&key.name),
            list(&columns),
            quoted(&parent),
            list(&referred)
        );
        for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
            if action != ReferentialAction::NoAction {
                out += &format!(" ON {event} {}", action_name(action));
            }
        }
        if key.is_deferred {
            out += " DEFERRABLE INITIALLY DEFERRED";
        }
        out
    }
}

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn action_name(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}
