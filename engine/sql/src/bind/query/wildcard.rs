//! `* EXCLUDE`, `REPLACE` and `RENAME`: changes to the outputs of a wildcard.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::unsupported;
use crate::bind::query::select::Output;
use crate::parse::position;
use nacre_types::{Error, Result};
use sqlparser::ast::{self, ExcludeSelectItem as Exclude, RenameSelectItem as Rename};

impl<'a> Binder<'a> {
    /// Applies the options of a wildcard to its outputs, which are those from `from` on.
    pub(crate) fn changed(
        &mut self,
        outputs: &mut Vec<Output>,
        from: usize,
        options: &'a ast::WildcardAdditionalOptions,
        env: &mut Env<'_>,
    ) -> Result<()> {
        let others = options.opt_ilike.is_some() || options.opt_except.is_some();
        if others || options.opt_alias.is_some() {
            return Err(unsupported("* with EXCEPT, ILIKE or an alias"));
        }
        let mut replaced_names: Vec<&str> = Vec::new();
        for replaced in options.opt_replace.iter().flat_map(|replace| &replace.items) {
            let at = output(outputs, from, &replaced.column_name, "REPLACE")?;
            let name = replaced.column_name.value.as_str();
            if replaced_names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                let place = position(replaced.column_name.span.start);
                return Err(Error::syntax(format!("REPLACE has `{name}` twice")).at(place));
            }
            replaced_names.push(name);
            outputs[at].expr = self.typed(&replaced.expr, env)?;
        }
        let names = match &options.opt_exclude {
            None => &[],
            Some(Exclude::Single(name)) => std::slice::from_ref(name),
            Some(Exclude::Multiple(names)) => names.as_slice(),
        };
        for name in names {
            let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
                return Err(unsupported("a qualified name in EXCLUDE"));
            };
            let at = output(outputs, from, name, "EXCLUDE")?;
            if replaced_names.iter().any(|known| known.eq_ignore_ascii_case(&name.value)) {
                let message = format!("`{}` is in EXCLUDE and in REPLACE", name.value);
                return Err(Error::syntax(message).at(position(name.span.start)));
            }
            let excluded = outputs[at].name.clone();
            let mut place = 0;
            outputs.retain(|o| {
                place += 1;
                place <= from || !o.name.eq_ignore_ascii_case(&excluded)
            });
        }
        let renamed = match &options.opt_rename {
            None => &[],
            Some(Rename::Single(one)) => std::slice::from_ref(one),
            Some(Rename::Multiple(list)) => list.as_slice(),
        };
        for pair in renamed {
            let at = output(outputs, from, &pair.ident, "RENAME")?;
            outputs[at].name.clone_from(&pair.alias.value);
        }
        if outputs.len() == from {
            return Err(Error::syntax("EXCLUDE leaves no column"));
        }
        Ok(())
    }
}

/// Returns the position of the output that an option names.
fn output(outputs: &[Output], from: usize, name: &ast::Ident, option: &str) -> Result<usize> {
    let found = outputs[from..].iter().position(|o| o.name.eq_ignore_ascii_case(&name.value));
    found.map(|at| from + at).ok_or_else(|| {
        let message = format!("no column `{}` for {option}", name.value);
        Error::not_found(message).with_sqlstate("42703").at(position(name.span.start))
    })
}
