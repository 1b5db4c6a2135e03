/** Sets what loads the rest of the engine, synchronously. */
export function setLoadMore(loader: () => void): void;

/** Called by the engine before the first function that it lacks. */
export function loadMore(): void;
