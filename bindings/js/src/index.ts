/** The package in browsers. */

export { connect } from './connect.js';
export * from './public.js';
