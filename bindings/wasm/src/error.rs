//! Conversion of errors across the boundary in both directions, kind for kind. The shape is
//! `ErrorData` in `worker/shared/errors.ts`.

use js_sys::{Object, Reflect};
use nacredb::{Error, ErrorKind, Reason};
use wasm_bindgen::JsValue;

/// Converts an engine error to a plain object to throw.
pub fn to_js(error: Error) -> JsValue {
    let data = Object::new();
    let set = |key: &str, value: JsValue| {
        // Setting a property of a plain object cannot fail.
        let _ = Reflect::set(&data, &key.into(), &value);
    };
    set("kind", error.kind().name().into());
    set("message", error.message().into());
    set("sqlstate", error.sqlstate().into());
    if let Some(at) = error.position() {
        let position = Object::new();
        let _ = Reflect::set(&position, &"line".into(), &at.line.into());
        let _ = Reflect::set(&position, &"column".into(), &at.column.into());
        set("position", position.into());
    }
    if error.reason() == Some(Reason::NotUploaded) {
        set("mayHaveRun", true.into());
    }
    for (key, value) in [("hint", error.hint()), ("table", error.table()), ("key", error.key())] {
        if let Some(value) = value {
            set(key, value.into());
        }
    }
    data.into()
}

/// Converts an exception from JavaScript to an engine error. The engine's own errors keep their
/// kind; among others, a full disk and a missing file are recognised.
pub fn from_js(thrown: JsValue, doing: &str) -> Error {
    let text = |key: &str| Reflect::get(&thrown, &key.into()).ok().and_then(|v| v.as_string());
    // `Reflect::get` fails on non-objects.
    let message = text("message")
        .or_else(|| thrown.as_string())
        .unwrap_or_else(|| "unknown failure".to_string());
    if let Some(kind) = text("kind").and_then(|name| ErrorKind::from_name(&name)) {
        let error = match text("sqlstate").as_deref() {
            Some(NO_SPACE) => no_space(Error::new(kind, message)),
            _ => Error::new(kind, message),
        };
        return match text("hint") {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
    }
    let (name, code) = (text("name").unwrap_or_default(), text("code").unwrap_or_default());
    if name == "QuotaExceededError" || code == "ENOSPC" || code == "EDQUOT" {
        return no_space(Error::limit(format!("{doing}: no storage left: {message}")));
    }
    if name == "NotFoundError" || code == "ENOENT" {
        return Error::not_found(format!("{doing}: {message}"));
    }
    Error::io(format!("{doing}: {message}"))
}

/// SQLSTATE of a full disk.
const NO_SPACE: &str = "53100";

fn no_space(error: Error) -> Error {
    error.with_sqlstate(NO_SPACE).with_reason(Reason::NoSpace)
}
