//! The Rust program of the README, word for word after this head.
#![allow(clippy::print_stdout)]

use nacre_native::{block_on, open_url};
use nacredb::{Database, Options, Value};

pub fn main() -> nacredb::Result<()> {
    block_on(async {
        let db = Database::open(open_url("shop")?, Options::default()).await?;
        let mut session = db.session();
        let sql = "select n_name from nation where n_nationkey = ?";
        let result = session.execute(sql, &[Value::Int(7)]).await?;
        println!("{:?}", result.to_rows()); // [[Text("GERMANY")]]
        db.close().await
    })
}
