/** Rules of a bucket for pages of other origins. */

import { createHash } from 'node:crypto';
import { AwsClient } from 'aws4fetch';
import type { Gateway } from '../../tools/versitygw.mjs';

/** Lets pages of an origin use the bucket of a server. */
export async function allow({ endpoint, credentials }: Gateway, origin: string): Promise<void> {
  const methods = ['GET', 'HEAD', 'PUT', 'DELETE'];
  const expose = ['ETag', 'Date', 'x-amz-meta-nacrewrite'];
  const rules = [
    `<AllowedOrigin>${origin}</AllowedOrigin><AllowedHeader>*</AllowedHeader>`,
    ...methods.map((method) => `<AllowedMethod>${method}</AllowedMethod>`),
    ...expose.map((header) => `<ExposeHeader>${header}</ExposeHeader>`),
  ];
  const body = `<CORSConfiguration><CORSRule>${rules.join('')}</CORSRule></CORSConfiguration>`;
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1' });
  const answer = await client.fetch(`${endpoint}/bucket?cors`, { method: 'PUT', headers, body });
  if (!answer.ok) {
    throw new Error(`${answer.status}: ${await answer.text()}`);
  }
}
