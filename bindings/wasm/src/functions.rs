//! Functions of the application, in JavaScript: `worker/shared/functions.ts`.
//!
//! As with stores, the engine holds only numbers; the JavaScript objects are in a thread-local table.

use crate::columns::column;
use crate::error::{from_js, to_js};
use crate::wire;
use js_sys::{Array, Function, Reflect, Uint32Array};
use nacredb::{
    AggregateDefinition, AggregateKernel, DataType, Error, Field, GroupStates, Result,
    ScalarDefinition, ScalarKernel, Vector, Volatility, vector_from_values,
};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

/// Estimated memory of the state of a group, which is a JavaScript value.
const STATE_BYTES: usize = 64;

#[wasm_bindgen]
extern "C" {
    /// `GroupStates` in `worker/shared/functions.ts`.
    type JsStates;

    #[wasm_bindgen(method, catch)]
    fn resize(this: &JsStates, groups: u32) -> std::result::Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn update(
        this: &JsStates,
        columns: &Array,
        groups: &Uint32Array,
    ) -> std::result::Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn finish(this: &JsStates, from: u32, to: u32) -> std::result::Result<Array, JsValue>;
}

thread_local! {
    static OBJECTS: RefCell<Vec<Option<JsValue>>> = const { RefCell::new(Vec::new()) };
}

/// An object of the table, until this is dropped.
struct Object(usize);

impl Object {
    fn new(object: JsValue) -> Object {
        OBJECTS.with_borrow_mut(|objects| {
            let free = objects.iter().position(Option::is_none).unwrap_or(objects.len());
            if free == objects.len() {
                objects.push(None);
            }
            objects[free] = Some(object);
            Object(free)
        })
    }

    /// A reference to the object. The table is not borrowed while JavaScript runs.
    fn get(&self) -> JsValue {
        OBJECTS.with_borrow(|objects| objects[self.0].clone()).unwrap_or(JsValue::UNDEFINED)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let object = OBJECTS.with_borrow_mut(|objects| objects[self.0].take());
        drop(object);
    }
}

/// What a function threw. Errors of this package keep their kind.
fn thrown(name: &str, thrown: JsValue) -> Error {
    let error = from_js(thrown, &format!("function {name}"));
    match error.kind() {
        nacredb::ErrorKind::Io => {
            Error::type_error(error.message().to_string()).with_sqlstate("38000")
        }
        _ => error,
    }
}

fn columns(arguments: &[Arc<Vector>]) -> Result<Array> {
    let out = Array::new();
    for argument in arguments {
        wire::push_column(&out, argument.data_type(), &[&**argument], argument.len())?;
    }
    Ok(out)
}

fn vector(values: &JsValue, to: DataType, name: &str) -> Result<Vector> {
    vector_from_values(to, &column(values, name)?)
        .map_err(|e| e.context(format!("function {name}")))
}

/// `WireFunction`.
struct Definition {
    name: String,
    parameters: Vec<String>,
    returns: String,
    is_volatile: bool,
    takes_nulls: bool,
    over_nothing: JsValue,
}

impl Definition {
    fn of(from: &JsValue) -> std::result::Result<Definition, JsValue> {
        let get = |key: &str| Reflect::get(from, &key.into());
        let text = |key: &str| get(key).map(|value| value.as_string().unwrap_or_default());
        let parameters = Array::from(&get("parameters")?);
        Ok(Definition {
            name: text("name")?,
            parameters: parameters.iter().map(|p| p.as_string().unwrap_or_default()).collect(),
            returns: text("returns")?,
            is_volatile: get("isVolatile")?.is_truthy(),
            takes_nulls: get("takesNulls")?.is_truthy(),
            over_nothing: get("overNothing")?,
        })
    }

    fn parameters(&self) -> Vec<&str> {
        self.parameters.iter().map(String::as_str).collect()
    }
}

/// The JavaScript function that `make` returns for arguments of these types.
fn made(make: &Function, parameters: &[DataType]) -> std::result::Result<Object, JsValue> {
    let field =
        |data_type: &DataType| Field { name: String::new(), data_type: *data_type, nullable: true };
    let fields: Vec<Field> = parameters.iter().map(field).collect();
    make.call1(&JsValue::UNDEFINED, &wire::fields(&fields)).map(Object::new)
}

/// A kernel whose function is known after the types are.
#[derive(Clone, Default)]
struct Kernel(Arc<OnceLock<Called>>);

/// A JavaScript function, and what its result becomes.
struct Called {
    function: Object,
    name: String,
    returns: DataType,
}

impl Kernel {
    fn called(&self) -> Result<(&Called, Function)> {
        let called = self.0.get().ok_or_else(|| Error::closed("the function is not there"))?;
        Ok((called, called.function.get().unchecked_into()))
    }
}

impl ScalarKernel for Kernel {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let (called, function) = self.called()?;
        let columns = columns(arguments)?;
        let values = function
            .call2(&JsValue::UNDEFINED, &columns, &JsValue::from(rows as u32))
            .map_err(|error| thrown(&called.name, error))?;
        vector(&values, called.returns, &called.name)
    }
}

impl AggregateKernel for Kernel {
    fn states(&self) -> Box<dyn GroupStates> {
        let states = self
            .called()
            .ok()
            .and_then(|(_, function)| function.call0(&JsValue::UNDEFINED).ok().map(Object::new));
        Box::new(States { kernel: self.clone(), states, groups: 0, asked: 0 })
    }
}

/// The states of an aggregate, in JavaScript.
struct States {
    kernel: Kernel,
    states: Option<Object>,
    /// Groups that JavaScript has states of.
    groups: usize,
    /// Groups that there must be room for.
    asked: usize,
}

impl States {
    fn states(&self) -> Result<(&Called, JsStates)> {
        let (called, _) = self.kernel.called()?;
        let states = self.states.as_ref().map_or(JsValue::UNDEFINED, Object::get);
        Ok((called, states.unchecked_into()))
    }

    /// The states, with room for the groups asked for.
    fn with_room(&self) -> Result<(&Called, JsStates)> {
        let (called, states) = self.states()?;
        if self.groups < self.asked {
            states.resize(self.asked as u32).map_err(|error| thrown(&called.name, error))?;
        }
        Ok((called, states))
    }
}

impl GroupStates for States {
    fn resize(&mut self, groups: usize) {
        self.asked = groups;
    }

    fn update(&mut self, arguments: &[Arc<Vector>], groups: &[u32]) -> Result<()> {
        let (called, states) = self.with_room()?;
        states
            .update(&columns(arguments)?, &Uint32Array::from(groups))
            .map_err(|error| thrown(&called.name, error))?;
        self.groups = self.asked;
        Ok(())
    }

    fn finish(&self, groups: Range<usize>) -> Result<Vector> {
        let (called, states) = self.with_room()?;
        let values = states
            .finish(groups.start as u32, groups.end as u32)
            .map_err(|error| thrown(&called.name, error))?;
        vector(&values, called.returns, &called.name)
    }

    fn memory_bytes(&self) -> usize {
        self.asked * STATE_BYTES
    }
}

/// Creates the scalar function of a `WireFunction`; `make` returns what is called for vectors.
pub fn create_scalar(
    database: &nacredb::Database,
    definition: &JsValue,
    make: &Function,
) -> std::result::Result<(), JsValue> {
    let of = Definition::of(definition)?;
    let kernel = Kernel::default();
    let mut scalar = ScalarDefinition::new(&of.name, &of.parameters(), &of.returns, kernel.clone())
        .map_err(to_js)?;
    if of.is_volatile {
        scalar = scalar.volatility(Volatility::Volatile);
    }
    if of.takes_nulls {
        scalar = scalar.takes_nulls();
    }
    let function = made(make, scalar.parameters())?;
    let called = Called { function, name: of.name, returns: scalar.returns() };
    let _ = kernel.0.set(called);
    database.create_function(scalar);
    Ok(())
}

/// Creates the aggregate of a `WireFunction`; `make` returns what makes `GroupStates`.
pub fn create_aggregate(
    database: &nacredb::Database,
    definition: &JsValue,
    make: &Function,
) -> std::result::Result<(), JsValue> {
    let of = Definition::of(definition)?;
    let kernel = Kernel::default();
    let mut aggregate =
        AggregateDefinition::new(&of.name, &of.parameters(), &of.returns, kernel.clone())
            .map_err(to_js)?;
    if of.takes_nulls {
        aggregate = aggregate.takes_nulls();
    }
    let over_nothing = crate::parameters::value(&of.over_nothing, || "overNothing".to_string());
    let aggregate = over_nothing.and_then(|value| aggregate.over_nothing(&value)).map_err(to_js)?;
    let function = made(make, aggregate.parameters())?;
    let called = Called { function, name: of.name, returns: aggregate.returns() };
    let _ = kernel.0.set(called);
    database.create_aggregate(aggregate);
    Ok(())
}
