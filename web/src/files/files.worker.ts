// Reads a dropped file outside the page's thread. The readers of binary formats are fetched when a
// file needs them.

import {
  FileError,
  type FileFailure,
  type FileMessage,
  type PageMessage,
  type Reader,
} from './messages';

let more = () => {};

self.onmessage = async ({ data }: MessageEvent<PageMessage>) => {
  if (data === 'more') more();
  else await read(data.file);
};

async function read(file: File): Promise<void> {
  const send = (message: FileMessage) => self.postMessage(message);
  try {
    const reader = await readerFor(file);
    for await (const piece of reader(file)) {
      const asked = new Promise<void>((resolve) => (more = resolve));
      send(piece);
      if (piece.kind !== 'progress') await asked;
    }
    send({ kind: 'end' });
  } catch (error) {
    send({ kind: 'failure', failure: failureOf(error) });
  }
}

/** Chooses by the first bytes, and for text by the name. */
async function readerFor(file: File): Promise<Reader> {
  if (file.size === 0) throw new FileError('empty', 'the file is empty');
  const head = new Uint8Array(await file.slice(0, 8).arrayBuffer());
  const magic = String.fromCharCode(...head);
  if (magic.startsWith('PAR1')) return (await import('./parquet')).readParquet;
  const isStream = head[0] === 0xff && head[1] === 0xff && head[2] === 0xff && head[3] === 0xff;
  if (magic.startsWith('ARROW1') || isStream) return (await import('./arrow')).readArrow;
  const text = await import('./text');
  if (/\.(?:ndjson|jsonl|json)$/i.test(file.name)) return text.readJson;
  if (/\.(?:csv|tsv|txt|tbl)$/i.test(file.name)) return text.readCsv;
  const kind = /\.([^.]+)$/.exec(file.name)?.[1];
  throw new FileError(
    'unsupported',
    `${kind ? `files of type ${kind}` : 'files without a type'} cannot be imported: use CSV, NDJSON, Arrow or Parquet`,
  );
}

function failureOf(error: unknown): FileFailure {
  if (error instanceof FileError) return error.failure;
  return { kind: 'page', message: error instanceof Error ? error.message : String(error) };
}
