/**
 * How the engine gets the part of itself that is not loaded from the beginning. A module by itself,
 * because both the engine's glue, which is generated, and its host import it.
 */

let load = () => {};

/** Sets what loads the rest of the engine. */
export function setLoadMore(loader) {
  load = loader;
}

/** Called by the engine before the first function that it lacks. */
export function loadMore() {
  load();
}
