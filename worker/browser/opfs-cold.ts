/**
 * Reads files without an access handle. `File` objects are snapshots of files: they lock nothing,
 * there may be any number of them, and a worker reads them synchronously. A read takes two to three
 * times as long as through a handle.
 *
 * A snapshot is valid as long as its file does not change.
 */

/** In workers only, and therefore not among the types of this project. */
interface FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
declare const FileReaderSync: new () => FileReaderSync;

let reader: FileReaderSync | undefined;

/** A snapshot of a file. */
export class ColdFile {
  readonly #file: File;

  private constructor(file: File) {
    this.#file = file;
  }

  /** Takes a snapshot of a file of a directory. */
  static async of(directory: FileSystemDirectoryHandle, entry: string): Promise<ColdFile> {
    return new ColdFile(await (await directory.getFileHandle(entry)).getFile());
  }

  /** Length in bytes. */
  get size(): number {
    return this.#file.size;
  }

  /** Fills `buffer` from `at`, as far as the file goes; answers the number of bytes. */
  read(buffer: Uint8Array, at: number): number {
    reader ??= new FileReaderSync();
    const bytes = reader.readAsArrayBuffer(this.#file.slice(at, at + buffer.length));
    buffer.set(new Uint8Array(bytes));
    return bytes.byteLength;
  }

  /** The first bytes of the file, as many as there are. */
  async head(length: number): Promise<Uint8Array> {
    return new Uint8Array(await this.#file.slice(0, length).arrayBuffer());
  }
}
