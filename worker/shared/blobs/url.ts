/** URLs of databases that are only in a blob store. */

/** Whether a database's URL names a blob store, so that it is only read. */
export function isBlobsUrl(url: string): boolean {
  return url.startsWith('s3://');
}
