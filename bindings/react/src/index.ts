/** The hook for React, and what it is made of. */

export { useLiveQuery, type LiveQueryOptions } from './use-live-query.js';
export { liveStore, type LiveState, type LiveStore } from './store.js';
