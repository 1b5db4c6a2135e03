/** Blob stores: a script of its own, which only databases with blobs load. */

export { openForEngine } from '../../../worker/shared/blobs/open-for-engine.js';
