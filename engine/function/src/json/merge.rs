//! `json_merge_patch` (RFC 7396): members of the patch replace those of the document, and null
//! removes them.

use super::tree::Tree;
use nacre_types::Result;
use nacre_types::hash::Map;
use nacre_types::json::Writer;

enum Task {
    /// Write a member of the document.
    Old(usize),
    /// Write a value patched by another; `None` for one that the document does not have.
    Patch(Option<usize>, usize),
    EndObject,
}

/// The document after the patch.
pub fn merge_patch(document: &str, patch: &str) -> Result<String> {
    let mut writer = Writer::with_capacity(document.len() + patch.len());
    let (document, patch) = (Tree::read(document)?, Tree::read(patch)?);
    let mut tasks = vec![Task::Patch(Some(0), 0)];
    while let Some(task) = tasks.pop() {
        let node = match task {
            Task::EndObject => {
                writer.object_end();
                continue;
            }
            Task::Old(at) => document.node(at),
            Task::Patch(_, at) => patch.node(at),
        };
        if !matches!(task, Task::Patch(_, 0)) {
            writer.key(&node.key);
        }
        match task {
            Task::Patch(old, new) if node.value.starts_with('{') => {
                writer.object_start();
                tasks.push(Task::EndObject);
                let from = tasks.len();
                members(&document, old, &patch, new, &mut tasks);
                tasks[from..].reverse();
            }
            _ => writer.value(node.value),
        }
    }
    Ok(writer.finish())
}

/// Adds a task for each member of an object that is patched.
fn members(
    document: &Tree<'_>,
    old: Option<usize>,
    patch: &Tree<'_>,
    new: usize,
    tasks: &mut Vec<Task>,
) {
    let mut changes: Map<&str, usize> =
        patch.inside(new).map(|at| (&*patch.node(at).key, at)).collect();
    let is_null = |at: usize| patch.node(at).value == "null";
    let old = old.filter(|at| document.node(*at).value.starts_with('{'));
    for at in old.into_iter().flat_map(|at| document.inside(at)) {
        match changes.remove(&*document.node(at).key) {
            None => tasks.push(Task::Old(at)),
            Some(change) if is_null(change) => {}
            Some(change) => tasks.push(Task::Patch(Some(at), change)),
        }
    }
    let added = |at: &usize| changes.contains_key(&*patch.node(*at).key) && !is_null(*at);
    tasks.extend(patch.inside(new).filter(added).map(|at| Task::Patch(None, at)));
}

#[cfg(test)]
mod tests {
    use super::merge_patch;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn patches_of_the_standard() {
        for (document, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merge_patch(document, patch).unwrap(), result, "{document} by {patch}");
        }
    }
}
