/** Answers each message. */

self.onmessage = () => self.postMessage('');
