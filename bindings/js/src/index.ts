/** The package in browsers: `connect` and the public names. */

export { connect, connectInThread } from './connect.js';
export * from './public.js';
