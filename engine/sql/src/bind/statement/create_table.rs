//! `CREATE TABLE`: columns, types, defaults and the primary key. The other things that definitions
//! declare are in `declared`.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::literal;
use crate::bind::expression::types;
use crate::bind::names::{check_character_set, check_collation, place, table_name, unsupported};
use crate::bind::rule::{Kind, rename_in_rules};
use crate::bind::scope::Scope;
use crate::bind::statement::assignment::table_fields;
use crate::bind::statement::declared::{Declared, counter_value};
use crate::bind::statement::index::Wanted;
use crate::bind::statement::storage_keys as keys;
use crate::bind::statement::table_clauses::{
    has_no_type, is_first_identity, refuse, refuse_deferral,
};
use crate::expr::ExprKind;
use crate::parse::position;
use crate::plan::{CatalogStatement, Plan, RowStatement, Statement};
use nacre_types::{
    Column, ColumnRule, DataType, Error, FIRST_TEMPORARY_TABLE, KeyColumns, Position, Result,
    TableId, TableSchema, Value, limits,
};
use sqlparser::ast::{self, ColumnOption, TableConstraint};

impl<'a> Binder<'a> {
    pub(crate) fn create_table(&mut self, create: &'a ast::CreateTable) -> Result<Statement> {
        refuse(create)?;
        let (name, at) = table_name(&create.name)?;
        if !create.temporary && self.catalog.view(&name).is_some() {
            let error = Error::already_exists(format!("view {name} already exists"));
            return Err(error.with_sqlstate("42P07").with_table(name).at(at));
        }
        if create.or_replace && create.if_not_exists {
            return Err(Error::syntax("OR REPLACE with IF NOT EXISTS").at(at));
        }
        let may_exist = create.if_not_exists || create.or_replace;
        let known = self.catalog.table(&name);
        // Temporary tables and others do not take each other's names.
        if !may_exist && known.is_some_and(|known| known.is_temporary() == create.temporary) {
            let error = Error::already_exists(format!("table {name} already exists"));
            return Err(error.with_sqlstate("42P07").with_table(name).at(at));
        }
        if create.columns.len() > limits::MAX_COLUMNS {
            let message = format!("table {name} has more than {} columns", limits::MAX_COLUMNS);
            return Err(Error::limit(message).with_sqlstate("54011").at(at));
        }
        let mut schema = TableSchema { name, id: new_id(create), ..TableSchema::default() };
        if let Some(query) = &create.query {
            let with_data = create.with_data.as_ref().is_none_or(|with| with.data);
            return self.create_table_as(schema, create, query, with_data);
        }
        if let Some(like) = &create.like {
            return self.create_table_like(create, like, schema.name);
        }
        let mut keys = Vec::new();
        let mut declared = Declared::default();
        for definition in &create.columns {
            match keys::of_definition(definition) {
                Some(key) => keys.push(key),
                None => self.column_definition(definition, &mut schema, &mut declared)?,
            }
        }
        if schema.columns.is_empty() {
            return Err(Error::syntax("a table must have at least one column").at(at));
        }
        for constraint in &create.constraints {
            match constraint {
                TableConstraint::PrimaryKey(key) => {
                    refuse_deferral(&key.characteristics)?;
                    self.primary_key(key, &mut schema)?;
                }
                TableConstraint::Unique(unique) => {
                    refuse_deferral(&unique.characteristics)?;
                    declared.index(Wanted::unique(unique)?);
                }
                TableConstraint::UniqueUsingIndex(_) => {
                    return Err(unsupported("UNIQUE USING INDEX"));
                }
                TableConstraint::PrimaryKeyUsingIndex(_) => {
                    return Err(unsupported("PRIMARY KEY USING INDEX"));
                }
                TableConstraint::ForeignKey(key) => declared.foreign_key(key, None, None),
                TableConstraint::Check(check) => declared.check(check, None, None)?,
                TableConstraint::Index(index) => declared.index(Wanted::plain(index)),
                TableConstraint::FulltextOrSpatial(_) => {
                    return Err(unsupported("a FULLTEXT or SPATIAL KEY"));
                }
                TableConstraint::Exclude(_) => return Err(unsupported("EXCLUDE")),
            }
        }
        keys.iter().try_for_each(|key| key.apply(&mut schema))?;
        self.apply_declared(&declared, &mut schema)?;
        set_first_identity(&create.table_options, &mut schema)?;
        Ok(created(create, schema))
    }

    /// Binds `CREATE TABLE … LIKE`: columns, keys, indexes and rules are those of another table, and
    /// its counter starts anew.
    fn create_table_like(
        &mut self,
        create: &ast::CreateTable,
        like: &ast::CreateTableLikeKind,
        name: String,
    ) -> Result<Statement> {
        use ast::{CreateTableLikeDefaults as Defaults, CreateTableLikeKind as Kind};
        let (Kind::Parenthesized(like) | Kind::Plain(like)) = like;
        if like.defaults == Some(Defaults::Excluding) {
            return Err(unsupported("LIKE … EXCLUDING DEFAULTS"));
        }
        let model = self.table(&like.name)?;
        let id = new_id(create);
        let mut schema = TableSchema { name, id, version: 0, ..(*model).clone() };
        schema.next_identity = 0;
        (schema.foreign_keys, schema.referenced_by) = (Vec::new(), Vec::new());
        let names = (&*model.name, &*schema.name.clone());
        rename_in_rules(&model, &mut schema, names, true)?;
        Ok(created(create, schema))
    }

    /// Binds `CREATE TABLE … AS`. The columns are those of the query, all nullable, and the first of
    /// them may be renamed; the table has no keys. `with_data`: whether the table gets the rows of
    /// the query.
    fn create_table_as(
        &mut self,
        mut schema: TableSchema,
        create: &ast::CreateTable,
        query: &'a ast::Query,
        with_data: bool,
    ) -> Result<Statement> {
        let plan = self.query(query)?;
        let mut from = plan.fields();
        if create.columns.len() > from.len() {
            let (names, columns) = (create.columns.len(), from.len());
            let message = format!("table {} lists {names} columns for {columns}", schema.name);
            return Err(Error::type_error(message).with_sqlstate("42P10"));
        }
        for (field, named) in from.iter_mut().zip(&create.columns) {
            field.name.clone_from(&named.name.value);
        }
        if from.len() > limits::MAX_COLUMNS {
            return Err(Error::limit(format!("more than {} columns", limits::MAX_COLUMNS))
                .with_sqlstate("54011"));
        }
        let mut to = from.clone();
        for (at, field) in to.iter_mut().enumerate() {
            field.nullable = true;
            if field.data_type == DataType::Null {
                field.data_type = DataType::TEXT;
            }
            if field.data_type == DataType::Interval {
                return Err(unsupported("a column of type INTERVAL"));
            }
            if from[..at].iter().any(|f| f.name.eq_ignore_ascii_case(&field.name)) {
                let error = Error::already_exists(format!(
                    "column {} is specified more than once; give one an alias",
                    field.name
                ));
                return Err(error.with_sqlstate("42701"));
            }
            let (name, data_type) = (field.name.clone(), field.data_type);
            let id = at as u32;
            schema.columns.push(Column {
                id,
                name,
                data_type,
                nullable: true,
                default: Value::Null,
                rule: ColumnRule::Constant,
            });
        }
        schema.next_column_id = schema.columns.len() as u32;
        let mut source = crate::bind::query::set_operation::converted(plan, &from, &to)?;
        if !with_data {
            source = Plan::Values { fields: to, rows: Vec::new() };
        }
        let (replace, if_not_exists) = (create.or_replace, create.if_not_exists);
        Ok(RowStatement::CreateTableAs { schema, replace, if_not_exists, source }.into())
    }

    /// Adds a column to the schema, and to `declared` what is to be applied once all columns and
    /// keys are known.
    pub(crate) fn column_definition(
        &mut self,
        definition: &'a ast::ColumnDef,
        schema: &mut TableSchema,
        declared: &mut Declared<'a>,
    ) -> Result<()> {
        let name = definition.name.value.clone();
        let at = position(definition.name.span.start);
        if keys::of_definition(definition).is_some() {
            return Err(Error::syntax(format!(
                "{} KEY is only allowed in CREATE TABLE",
                name.to_ascii_uppercase()
            ))
            .at(at));
        }
        if schema.column_index(&name).is_some() {
            let error = Error::already_exists(format!("column {name} is specified more than once"));
            return Err(error.with_sqlstate("42701").at(at));
        }
        let serial = types::serial(&definition.data_type);
        let data_type = match serial {
            Some(data_type) => data_type,
            // The expression decides.
            None if is_untyped(definition) => DataType::Null,
            None => types::data_type(&definition.data_type)
                .map_err(|e| e.context(format!("column {name}")).at(at))?,
        };
        if data_type == DataType::Interval {
            return Err(unsupported("a column of type INTERVAL").at(at));
        }
        let id = schema.take_column_id();
        let rule = match serial {
            Some(_) => ColumnRule::Identity { always: false },
            None => ColumnRule::Constant,
        };
        let default = Value::Null;
        let mut column = Column { id, name, data_type, nullable: serial.is_none(), default, rule };
        let mut primary = false;
        let mut told = None;
        let mut sources = usize::from(serial.is_some());
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null | ColumnOption::NotNull => {
                    let nullable = option.option == ColumnOption::Null;
                    if told.is_some_and(|told: bool| told != nullable) {
                        let message = format!("column {} is both NULL and NOT NULL", column.name);
                        return Err(Error::syntax(message).at(at));
                    }
                    told = Some(nullable);
                    column.nullable = nullable;
                }
                ColumnOption::Default(expr) => {
                    self.set_default(expr, schema, &mut column)?;
                    sources += 1;
                }
                ColumnOption::PrimaryKey(key) => {
                    refuse_deferral(&key.characteristics).map_err(|e| e.at(at))?;
                    primary = true;
                }
                ColumnOption::Comment(_) => {}
                ColumnOption::Unique(unique) => {
                    refuse_deferral(&unique.characteristics).map_err(|e| e.at(at))?;
                    let name = option.name.as_ref();
                    declared.index(Wanted::of_column(&definition.name, unique, name)?)
                }
                ColumnOption::ForeignKey(key) => {
                    declared.foreign_key(key, option.name.as_ref(), Some(&definition.name))
                }
                ColumnOption::Check(check) => {
                    declared.check(check, option.name.as_ref(), Some(&column.name))?
                }
                ColumnOption::Collation(name) => {
                    check_collation(&name.to_string()).map_err(|e| e.at(at))?;
                }
                ColumnOption::CharacterSet(name) => {
                    check_character_set(&name.to_string()).map_err(|e| e.at(at))?;
                }
                ColumnOption::Generated { .. }
                | ColumnOption::Identity(_)
                | ColumnOption::DialectSpecific(_) => {
                    let first = declared.generate(&option.option, &mut column);
                    schema.next_identity = first.map_err(|e| e.at(at))?.max(schema.next_identity);
                    sources += 1;
                }
                ColumnOption::OnUpdate(_) => return Err(unsupported("ON UPDATE").at(at)),
                _ => return Err(unsupported("this column option").at(at)),
            }
        }
        if sources > 1 {
            let name = &column.name;
            return Err(Error::syntax(format!("column {name} has two sources of values")).at(at));
        }
        if matches!(column.rule, ColumnRule::Identity { .. }) {
            check_identity(&column, schema).map_err(|e| e.at(at))?;
            if told == Some(true) {
                let message = format!("identity column {} is declared NULL", column.name);
                return Err(Error::syntax(message).at(at));
            }
            column.nullable = false;
        }
        let place = schema.columns.len();
        schema.columns.push(column);
        if primary {
            set_primary_key(schema, vec![place], at)?;
        }
        Ok(())
    }

    /// Returns the type of the expression of a generated column that is declared without one.
    pub(crate) fn generated_type(
        &mut self,
        ast: &'a ast::Expr,
        schema: &TableSchema,
    ) -> Result<DataType> {
        let scope = Scope::of(&schema.name, &table_fields(schema));
        match self.typed(ast, &mut Env::new(&scope, "GENERATED"))?.data_type {
            DataType::Null => Ok(DataType::TEXT),
            DataType::Interval => Err(unsupported("a column of type INTERVAL").at(place(ast))),
            data_type => Ok(data_type),
        }
    }

    /// Sets the default of a column: a constant is cast to its type, any other expression is kept
    /// as text.
    pub(crate) fn set_default(
        &mut self,
        ast: &'a ast::Expr,
        schema: &TableSchema,
        column: &mut Column,
    ) -> Result<()> {
        let scope = Scope::default();
        let expr = self.expr(ast, &mut Env::new(&scope, "DEFAULT"))?;
        let to = column.data_type;
        let expr = self.assign(expr, to, &column.name).map_err(|e| e.at(place(ast)))?;
        let constant = match expr.kind {
            ExprKind::Literal(value) => Some(value),
            ExprKind::Cast(inner) => match inner.kind {
                ExprKind::Literal(value) => {
                    let cast = literal::cast_fully(inner.data_type, &value, to);
                    let cast = cast.map_err(|e| e.at(place(ast)))?;
                    let error = || Error::out_of_range(format!("DEFAULT does not fit {to}"));
                    Some(cast.ok_or_else(|| error().at(place(ast)))?)
                }
                _ => None,
            },
            _ => None,
        };
        match constant {
            Some(value) => (column.default, column.rule) = (value, ColumnRule::Constant),
            None => {
                let text = self.declared_rule(ast, schema, Kind::Default(column))?;
                column.rule = ColumnRule::Default(text);
            }
        }
        Ok(())
    }

    fn primary_key(
        &mut self,
        key: &ast::PrimaryKeyConstraint,
        schema: &mut TableSchema,
    ) -> Result<()> {
        refuse_of_primary_key(key)?;
        let mut columns = Vec::new();
        let mut first = None;
        for column in &key.columns {
            let ast::Expr::Identifier(ident) = &column.column.expr else {
                return Err(unsupported("a PRIMARY KEY of expressions"));
            };
            let at = position(ident.span.start);
            first = first.or(at);
            if matches!(column.column.options.sort, Some(ast::OrderBySort::Desc)) {
                return Err(unsupported("a descending key column").at(at));
            }
            let Some(place) = schema.column_index(&ident.value) else {
                return Err(crate::bind::scope::no_column(schema, &ident.value).at(at));
            };
            if columns.contains(&place) {
                let error = Error::already_exists(format!(
                    "column {} appears twice in the PRIMARY KEY",
                    ident.value
                ));
                return Err(error.with_sqlstate("42701").at(at));
            }
            columns.push(place);
        }
        set_primary_key(schema, columns, first)
    }
}

/// Refuses what a primary key cannot have. Of its names there is one, `PRIMARY`.
fn refuse_of_primary_key(key: &ast::PrimaryKeyConstraint) -> Result<()> {
    let options = key.index_options.iter().filter_map(|option| match option {
        ast::IndexOption::Using(using) => Some(using),
        ast::IndexOption::Comment(_) => None,
    });
    if key.index_type.iter().chain(options).any(|using| *using != ast::IndexType::BTree) {
        return Err(unsupported("PRIMARY KEY … USING other than BTREE"));
    }
    if !key.include.is_empty() {
        return Err(unsupported("PRIMARY KEY … INCLUDE"));
    }
    Ok(())
}

fn set_primary_key(
    schema: &mut TableSchema,
    columns: Vec<usize>,
    at: Option<Position>,
) -> Result<()> {
    if schema.primary_key.is_some() {
        return Err(Error::syntax("a table can have only one PRIMARY KEY")
            .with_sqlstate("42P16")
            .at(at));
    }
    for column in &columns {
        let column = &mut schema.columns[*column];
        if column.data_type == DataType::Json {
            return Err(unsupported("a PRIMARY KEY of type JSON").at(at));
        }
        column.nullable = false;
    }
    schema.primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns });
    Ok(())
}

/// Fails if a column cannot count rows, or if another one does.
fn check_identity(column: &Column, schema: &TableSchema) -> Result<()> {
    if !column.data_type.is_integer() {
        let message = format!("identity column {} is of type {}", column.name, column.data_type);
        return Err(Error::type_error(format!("{message}, not an integer")));
    }
    match schema.identity_column() {
        Some(_) => Err(unsupported("a second identity column")),
        None => Ok(()),
    }
}

/// Applies MySQL's table option `AUTO_INCREMENT = n`.
fn set_first_identity(options: &ast::CreateTableOptions, schema: &mut TableSchema) -> Result<()> {
    let ast::CreateTableOptions::Plain(list) = options else { return Ok(()) };
    for option in list {
        if let ast::SqlOption::KeyValue { key, value } = option
            && is_first_identity(key)
        {
            schema.next_identity = counter_value(&value.to_string())?.max(schema.next_identity);
        }
    }
    Ok(())
}

/// What stands for the id of a new table: whether it is temporary.
fn new_id(create: &ast::CreateTable) -> TableId {
    if create.temporary { FIRST_TEMPORARY_TABLE } else { 0 }
}

fn created(create: &ast::CreateTable, schema: TableSchema) -> Statement {
    let (if_not_exists, replace) = (create.if_not_exists, create.or_replace);
    CatalogStatement::CreateTable { schema, if_not_exists, replace }.into()
}

/// Whether a column is generated and written without a type.
fn is_untyped(definition: &ast::ColumnDef) -> bool {
    let is_generated = |option: &ast::ColumnOptionDef| {
        matches!(option.option, ColumnOption::Generated { generation_expr: Some(_), .. })
    };
    has_no_type(definition) && definition.options.iter().any(is_generated)
}
