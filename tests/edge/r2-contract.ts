/** A Worker that runs the contract of blob stores on its bucket, and answers the promise that is broken. */

import { checkBlobStore } from '../../worker/shared/blobs/contract.js';
import { encrypted } from '../../worker/shared/blobs/encrypted-store.js';
import { type Bucket, openBucket } from '../../worker/edge/r2-store.js';

export default {
  async fetch(request: Request, { BUCKET }: { BUCKET: Bucket }): Promise<Response> {
    const kind = new URL(request.url).pathname.slice(1);
    const key = kind === 'sealed' ? crypto.getRandomValues(new Uint8Array(32)) : undefined;
    let prefixes = 0;
    try {
      await checkBlobStore(() => encrypted(openBucket(BUCKET, `${kind}/${prefixes++}`), key));
      return new Response('kept');
    } catch (error) {
      return new Response(String(error));
    }
  },
};
