/** An empty page with an empty worker, which answers one message. */

const worker = new Worker(new URL('./empty-worker.js', import.meta.url), { type: 'module' });
worker.onmessage = () => {
  Object.assign(window, { started: { ms: performance.now(), rows: [] } });
};
worker.postMessage('');
