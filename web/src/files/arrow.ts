// Reads Arrow IPC files and streams. Record batches go to the database as they are.

import { DateUnit, Table, tableFromIPC, tableToIPC, Type, type DataType } from 'apache-arrow';

import { columnNames } from './infer';
import { FileError, type Piece } from './messages';

export async function* readArrow(file: File): AsyncGenerator<Piece> {
  let table: Table;
  try {
    table = tableFromIPC(new Uint8Array(await file.arrayBuffer()));
  } catch (error) {
    throw new FileError('arrow', error instanceof Error ? error.message : String(error));
  }
  const { fields } = table.schema;
  const names = columnNames(fields.map(({ name }) => name));
  const columns = fields.map(({ type }, at) => ({
    name: names[at]!,
    type: sqlType(type, names[at]!),
  }));
  if (columns.length === 0) throw new FileError('empty', 'the file has no columns');
  yield { kind: 'table', columns };
  let done = 0;
  for (const batch of table.batches) {
    done += batch.numRows;
    const bytes = tableToIPC(new Table([batch]), 'stream');
    yield { kind: 'arrow', bytes, count: batch.numRows, fraction: done / table.numRows };
  }
}

/** The SQL type of a column. */
function sqlType(type: DataType, column: string): string {
  const given = type as DataType & { [name: string]: number };
  switch (type.typeId) {
    case Type.Bool:
      return 'boolean';
    case Type.Int: {
      const names: Record<number, string> = {
        8: 'tinyint',
        16: 'smallint',
        32: 'int',
        64: 'bigint',
      };
      return `${names[given.bitWidth!]}${given.isSigned ? '' : ' unsigned'}`;
    }
    case Type.Float:
      return given.precision === 2 ? 'double' : 'float';
    case Type.Decimal:
      return `decimal(${given.precision}, ${given.scale})`;
    case Type.Utf8:
    case Type.LargeUtf8:
      return 'text';
    case Type.Binary:
      return 'blob';
    case Type.Date:
      return given.unit === DateUnit.DAY ? 'date' : 'timestamp(6)';
    case Type.Timestamp:
      return 'timestamp(6)';
    case Type.Dictionary:
      return sqlType((type as unknown as { dictionary: DataType }).dictionary, column);
    default:
      throw new FileError('unsupported', `column ${column} has the Arrow type ${String(type)}`);
  }
}
