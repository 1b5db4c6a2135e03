/** The package in browsers: `connect` and the public names. */

export { connect } from './connect.js';
export * from './public.js';
