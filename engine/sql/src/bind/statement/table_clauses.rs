//! Clauses of `CREATE TABLE` that are refused: whatever the parser knows is either done or named in
//! an error, never dropped.

use crate::bind::names::{check_character_set, check_collation, unsupported};
use crate::parse::spelling::NO_TYPE;
use nacre_types::{Error, Result};
use sqlparser::ast::{self, CreateTableOptions, HiveDistributionStyle, OnCommit, SqlOption};

/// Returns an error that names the first clause that is not supported.
pub(super) fn refuse(create: &ast::CreateTable) -> Result<()> {
    // Every field is named, so that one the parser adds is not overlooked.
    let ast::CreateTable {
        or_replace: _,
        temporary,
        unlogged,
        external,
        dynamic,
        global,
        if_not_exists: _,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query,
        // A table with a primary key has no other row number.
        without_rowid: _,
        like,
        clone,
        version,
        comment: _,
        on_commit,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        // Values always have the type of their column.
        strict: _,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        with_connection,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
        multiset,
        with_data,
        fallback,
    } = create;
    let has_statistics = with_data.as_ref().is_some_and(|with| with.statistics.is_some());
    let clauses = [
        (*unlogged, "an UNLOGGED table"),
        (*external, "an EXTERNAL table"),
        (*dynamic, "a DYNAMIC table"),
        (*global == Some(true) || global.is_some() && !temporary, "a GLOBAL or LOCAL table"),
        (*transient, "a TRANSIENT table"),
        (*volatile, "a VOLATILE table"),
        (*iceberg, "an ICEBERG table"),
        (*snapshot, "a SNAPSHOT table"),
        (
            query.is_some() && !(columns.iter().all(is_name) && constraints.is_empty()),
            "CREATE TABLE … AS with types or keys",
        ),
        (query.is_some() && like.is_some(), "CREATE TABLE … LIKE with AS"),
        (has_statistics, "WITH DATA AND STATISTICS"),
        (clone.is_some(), "CREATE TABLE … CLONE"),
        (
            like.is_some() && !(columns.is_empty() && constraints.is_empty()),
            "CREATE TABLE … LIKE with columns or keys",
        ),
        (partition_by.is_some(), "PARTITION BY"),
        (!matches!(hive_distribution, HiveDistributionStyle::NONE), "PARTITIONED BY"),
        (partition_of.is_some() || for_values.is_some(), "PARTITION OF"),
        (inherits.is_some(), "INHERITS"),
        (hive_formats.as_ref().is_some_and(is_given), "ROW FORMAT or STORED AS"),
        (file_format.is_some() || location.is_some(), "STORED AS or LOCATION"),
        (version.is_some(), "a version of a table"),
        (on_commit.is_some_and(|then| !temporary || then != OnCommit::PreserveRows), "ON COMMIT"),
        (on_cluster.is_some(), "ON CLUSTER"),
        (primary_key.is_some(), "PRIMARY KEY behind the columns"),
        (order_by.is_some(), "ORDER BY of a table"),
        (cluster_by.is_some(), "CLUSTER BY"),
        (clustered_by.is_some(), "CLUSTERED BY"),
        (*copy_grants, "COPY GRANTS"),
        (enable_schema_evolution.is_some(), "ENABLE_SCHEMA_EVOLUTION"),
        (change_tracking.is_some(), "CHANGE_TRACKING"),
        (data_retention_time_in_days.is_some(), "DATA_RETENTION_TIME_IN_DAYS"),
        (max_data_extension_time_in_days.is_some(), "MAX_DATA_EXTENSION_TIME_IN_DAYS"),
        (default_ddl_collation.is_some(), "DEFAULT_DDL_COLLATION"),
        (with_aggregation_policy.is_some(), "WITH AGGREGATION POLICY"),
        (with_row_access_policy.is_some(), "WITH ROW ACCESS POLICY"),
        (with_storage_lifecycle_policy.is_some(), "WITH STORAGE LIFECYCLE POLICY"),
        (with_tags.is_some(), "WITH TAG"),
        (external_volume.is_some(), "EXTERNAL_VOLUME"),
        (with_connection.is_some(), "WITH CONNECTION"),
        (base_location.is_some(), "BASE_LOCATION"),
        (catalog.is_some() || catalog_sync.is_some(), "CATALOG"),
        (storage_serialization_policy.is_some(), "STORAGE_SERIALIZATION_POLICY"),
        (target_lag.is_some(), "TARGET_LAG"),
        (warehouse.is_some(), "WAREHOUSE"),
        (refresh_mode.is_some(), "REFRESH_MODE"),
        (initialize.is_some(), "INITIALIZE"),
        (*require_user, "REQUIRE USER"),
        (diststyle.is_some() || distkey.is_some(), "DISTSTYLE or DISTKEY"),
        (sortkey.is_some(), "SORTKEY"),
        (backup.is_some(), "BACKUP"),
        (fallback.is_some(), "FALLBACK"),
        (multiset.is_some(), "a SET or MULTISET table"),
    ];
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(unsupported(name)),
        None => refuse_options(table_options, query.is_some() || like.is_some()),
    }
}

/// Whether a column is nothing but a name.
fn is_name(column: &ast::ColumnDef) -> bool {
    has_no_type(column) && column.options.is_empty()
}

/// Whether a column is written without a type.
pub(super) fn has_no_type(column: &ast::ColumnDef) -> bool {
    let ast::DataType::Custom(name, _) = &column.data_type else { return false };
    let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return false };
    ident.value == NO_TYPE
}

fn is_given(format: &ast::HiveFormat) -> bool {
    format.row_format.is_some() || format.storage.is_some() || format.location.is_some()
}

/// Refuses options of the form `name = value`, except those of MySQL's dumps that change nothing
/// here: the engine, the format of rows, comments, UTF-8 as the character set, and collations by bytes. A table like another one
/// takes no first number of its own.
fn refuse_options(options: &CreateTableOptions, is_like: bool) -> Result<()> {
    let list = match options {
        CreateTableOptions::None => return Ok(()),
        CreateTableOptions::Plain(list) => list,
        CreateTableOptions::With(_) => return Err(unsupported("WITH (…) of a table")),
        CreateTableOptions::Options(_) => return Err(unsupported("OPTIONS (…) of a table")),
        CreateTableOptions::TableProperties(_) => return Err(unsupported("TBLPROPERTIES")),
    };
    list.iter().try_for_each(|option| match option {
        SqlOption::Comment(_) => Ok(()),
        SqlOption::NamedParenthesizedList(list) if is(&list.key, "ENGINE") => Ok(()),
        SqlOption::KeyValue { key, .. } if is(key, "ROW_FORMAT") => Ok(()),
        SqlOption::KeyValue { key, .. } if is_first_identity(key) && !is_like => Ok(()),
        SqlOption::KeyValue { key, value } if is_character_set(key) => {
            check_character_set(&value.to_string())
        }
        SqlOption::KeyValue { key, value } if is_collation(key) => {
            check_collation(&value.to_string())
        }
        SqlOption::KeyValue { key, .. } => Err(table_option(&key.value)),
        SqlOption::NamedParenthesizedList(list) => Err(table_option(&list.key.value)),
        SqlOption::Ident(name) => Err(table_option(&name.value)),
        SqlOption::TableSpace(_) => Err(unsupported("TABLESPACE")),
        SqlOption::Clustered(_) => Err(unsupported("CLUSTERED")),
        SqlOption::Partition { .. } => Err(unsupported("PARTITION")),
    })
}

fn is(name: &ast::Ident, word: &str) -> bool {
    name.value.eq_ignore_ascii_case(word)
}

/// Whether an option of a table is `AUTO_INCREMENT = n`.
pub(super) fn is_first_identity(key: &ast::Ident) -> bool {
    is(key, "AUTO_INCREMENT")
}

fn is_character_set(key: &ast::Ident) -> bool {
    ["CHARSET", "CHARACTER SET", "DEFAULT CHARSET", "DEFAULT CHARACTER SET"]
        .iter()
        .any(|name| is(key, name))
}

fn is_collation(key: &ast::Ident) -> bool {
    ["COLLATE", "DEFAULT COLLATE"].iter().any(|name| is(key, name))
}

fn table_option(name: &str) -> Error {
    unsupported(&format!("the table option {}", name.to_ascii_uppercase()))
}

/// Refuses a key that is not checked by each statement.
pub(super) fn refuse_deferral(deferral: &Option<ast::ConstraintCharacteristics>) -> Result<()> {
    let Some(ast::ConstraintCharacteristics { deferrable, initially, enforced }) = deferral else {
        return Ok(());
    };
    let is_late = *initially == Some(ast::DeferrableInitial::Deferred);
    match () {
        () if *enforced == Some(false) => Err(unsupported("NOT ENFORCED")),
        () if *deferrable == Some(true) || is_late => Err(unsupported("a DEFERRABLE constraint")),
        () => Ok(()),
    }
}
