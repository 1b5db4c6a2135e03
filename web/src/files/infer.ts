// Finds the narrowest SQL type for a column of text or JSON values, from all of them.

/** A value as a parameter of an insert. */
export type Cell = string | number | bigint | boolean | null | object;

const INTEGER = /^-?(?:0|[1-9]\d{0,17})$/;
const DECIMAL = /^-?(?:0|[1-9]\d*)\.(\d+)$/;
const DOUBLE = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const BOOLEAN = /^(?:true|false)$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?$/;
/** Digits that a decimal column keeps exactly and fast. */
const DECIMAL_DIGITS = 18;

/** Looks at every value of one column. */
export class TypeGuess {
  #seen = false;
  #json = false;
  #texts = false;
  #kinds = new Set(['boolean', 'integer', 'decimal', 'double', 'date', 'timestamp']);
  #whole = 1;
  #scale = 0;

  /** Looks at a text. A null decides nothing. */
  text(value: string | null): void {
    if (value === null) return;
    this.#seen = true;
    this.#texts = true;
    this.#look(value);
  }

  /** Looks at a JSON value. */
  json(value: unknown): void {
    if (value === null || value === undefined) return;
    this.#seen = true;
    if (typeof value === 'string') {
      this.#texts = true;
      this.#look(value, ['date', 'timestamp']);
    } else if (typeof value === 'number') {
      this.#look(String(value), ['integer', 'double']);
    } else if (typeof value === 'boolean') {
      this.#look(String(value), ['boolean']);
    } else {
      this.#json = true;
    }
  }

  /** The type as SQL. Values of several kinds are text or, in JSON, stay JSON. */
  get type(): string {
    if (!this.#seen) return 'text';
    if (this.#json) return 'json';
    if (this.#kinds.has('boolean')) return 'boolean';
    if (this.#kinds.has('integer')) return 'bigint';
    if (this.#kinds.has('decimal') && this.#whole + this.#scale <= DECIMAL_DIGITS) {
      return `decimal(${this.#whole + this.#scale}, ${this.#scale})`;
    }
    if (this.#kinds.has('double')) return 'double';
    if (this.#kinds.has('date')) return 'date';
    if (this.#kinds.has('timestamp')) return 'timestamp(6)';
    return this.#texts ? 'text' : 'json';
  }

  #look(value: string, allowed?: string[]): void {
    const kinds = this.#kinds;
    if (kinds.size === 0) return;
    const keep = (kind: string, fits: boolean) => {
      if (!fits || (allowed && !allowed.includes(kind))) kinds.delete(kind);
    };
    if (kinds.has('boolean')) keep('boolean', BOOLEAN.test(value));
    if (kinds.has('decimal')) {
      const scale = DECIMAL.exec(value)?.[1]?.length ?? 0;
      keep('decimal', scale > 0 || INTEGER.test(value));
      const whole = value.length - (scale > 0 ? scale + 1 : 0) - (value.startsWith('-') ? 1 : 0);
      this.#scale = Math.max(this.#scale, scale);
      this.#whole = Math.max(this.#whole, whole);
    }
    if (kinds.has('integer')) keep('integer', INTEGER.test(value));
    if (kinds.has('double')) keep('double', DOUBLE.test(value) && !/^-?0\d/.test(value));
    if (kinds.has('date')) keep('date', isDate(value));
    if (kinds.has('timestamp')) keep('timestamp', isDate(value) || isTimestamp(value));
  }
}

const isDate = (text: string): boolean => DATE.test(text) && exists(text);

const isTimestamp = (text: string): boolean => TIMESTAMP.test(text) && exists(text);

/** Whether the calendar has this day, and the clock this time. */
function exists(text: string): boolean {
  const day = text.slice(0, 10);
  const time = text.slice(11).replace('Z', '');
  const date = new Date(`${day}T${time === '' ? '00:00' : time.slice(0, 8)}Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

/** A text of a column as its type needs it. */
export function convert(value: string | null, type: string): Cell {
  if (value === null) return null;
  switch (type) {
    case 'boolean':
      return value.toLowerCase() === 'true';
    case 'bigint': {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : BigInt(value);
    }
    case 'double':
      return Number(value);
    case 'timestamp(6)':
      return value.replace('T', ' ').replace('Z', '');
    default:
      return value;
  }
}

/** A JSON value of a column as its type needs it. */
export function convertJson(value: unknown, type: string): Cell {
  if (value === null || value === undefined) return null;
  if (type === 'json') return JSON.stringify(value);
  if (typeof value === 'string') return convert(value, type);
  return type === 'text' ? String(value) : (value as Cell);
}

/** Distinct, non-empty column names. */
export function columnNames(names: string[]): string[] {
  const used = new Set<string>();
  return names.map((given, at) => {
    const name = given.trim() || `column_${at + 1}`;
    let free = name;
    for (let number = 2; used.has(free.toLowerCase()); number += 1) free = `${name}_${number}`;
    used.add(free.toLowerCase());
    return free;
  });
}

/** A table's name for a file's name. */
export function tableName(file: string, taken: string[]): string {
  const base =
    file
      .replace(/\.[^.]*$/, '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, '_')
      .replace(/^_+|_+$/g, '')
      .slice(0, 48) || 'file';
  const name = /^\p{N}/u.test(base) ? `t_${base}` : base;
  let free = name;
  for (let number = 2; taken.includes(free); number += 1) free = `${name}_${number}`;
  return free;
}
