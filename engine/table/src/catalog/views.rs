//! Views in the catalog: named query texts. What they mean is not known here.

use crate::record;
use crate::store::Store;
use nacre_types::{Error, Result, ViewSchema};
use std::sync::{Arc, PoisonError};

impl Store {
    /// All views, by name.
    pub fn views(&self) -> Vec<Arc<ViewSchema>> {
        self.catalog
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .views
            .values()
            .cloned()
            .collect()
    }

    /// A view by name, without regard to ASCII case.
    pub fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        catalog.views.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Makes a view; with `replace` in the place of one of that name.
    pub fn create_view(&self, view: ViewSchema, replace: bool) -> Result<()> {
        self.check_open()?;
        let name = view.name.to_ascii_lowercase();
        let mut payload = record::begin(0);
        record::create_view(&mut payload, &view);
        self.commit_ddl(payload, |catalog, _| {
            let kind =
                match (catalog.by_name.contains_key(&name), catalog.views.contains_key(&name)) {
                    (true, _) => "table",
                    (false, true) if !replace => "view",
                    _ => {
                        catalog.views.insert(name, Arc::new(view));
                        return Ok(());
                    }
                };
            Err(Error::already_exists(format!("{kind} {} exists already", view.name))
                .with_sqlstate("42P07"))
        })
    }

    /// Drops a view.
    pub fn drop_view(&self, name: &str) -> Result<()> {
        self.check_open()?;
        let mut payload = record::begin(0);
        record::drop_view(&mut payload, name);
        self.commit_ddl(payload, |catalog, _| {
            match catalog.views.remove(&name.to_ascii_lowercase()) {
                Some(_) => Ok(()),
                None => Err(Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01")),
            }
        })
    }
}
