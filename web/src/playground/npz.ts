// Task files: NumPy's .npz, which is a ZIP archive of .npy arrays.
import { inflated, type Numbers, type TaskArrays } from "./engine";

export interface File {
  arrays: TaskArrays;
  names: string[]; // of the tokens; empty: none
}

const namesOf = "x_token_names";
const mostBytes = 2 ** 24; // of an array: far more than the page can show
export const wholeNumbers = new Set(["offsets", "query_token", "sequence", "visible", "select"]);

type Read = (view: DataView, at: number) => number;
const readers: Record<string, [number, Read]> = {
  f8: [8, (view, at) => view.getFloat64(at, true)],
  f4: [4, (view, at) => view.getFloat32(at, true)],
  i8: [8, (view, at) => Number(view.getBigInt64(at, true))],
  i4: [4, (view, at) => view.getInt32(at, true)],
  i2: [2, (view, at) => view.getInt16(at, true)],
  i1: [1, (view, at) => view.getInt8(at)],
  u8: [8, (view, at) => Number(view.getBigUint64(at, true))],
  u4: [4, (view, at) => view.getUint32(at, true)],
  u2: [2, (view, at) => view.getUint16(at, true)],
  u1: [1, (view, at) => view.getUint8(at)],
  b1: [1, (view, at) => view.getUint8(at)],
};

function readNpy(name: string, bytes: Uint8Array): { shape: number[]; data: number[] | string[] } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes[0] !== 0x93) throw new Error(`${name}: not a NumPy array`);
  const wide = (bytes[6] ?? 1) > 1;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const start = (wide ? 12 : 10) + length;
  const header = new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start));
  const type = /'descr':\s*'([<>|=])(\w)(\d+)'/.exec(header);
  const shape = [...(/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "").matchAll(/\d+/g)].map(([digits]) =>
    Number(digits),
  );
  const count = shape.reduce((all, one) => all * one, 1);
  if (!type || type[1] === ">") throw new Error(`${name}: numbers of this kind cannot be read here`);
  if ((type[2] === "U") !== (name === namesOf))
    throw new Error(`${name}: holds ${type[2] === "U" ? "text" : "numbers"}`);
  if (wholeNumbers.has(name) && type[2] === "f") throw new Error(`${name}: must be integers`);
  if (type[2] === "U") {
    const letters = Number(type[3]);
    if (count > bytes.length || start + 4 * letters * count > bytes.length)
      throw new Error(`${name}: the file ends too soon`);
    const text = (k: number): string =>
      Array.from({ length: letters }, (_, j) => view.getUint32(start + 4 * (k * letters + j), true))
        .filter((code) => code > 0)
        .map((code) => String.fromCodePoint(code))
        .join("");
    return { shape, data: Array.from({ length: count }, (_, k) => text(k)) };
  }
  const [width, read] = readers[`${type[2]}${type[3]}`] ?? [0, null];
  if (!read) throw new Error(`${name}: numbers of this kind cannot be read here`);
  if (start + width * count > bytes.length) throw new Error(`${name}: the file ends too soon`);
  const data = Array.from({ length: count }, (_, k) => read(view, start + width * k));
  if ("iu".includes(type[2] ?? "") && !data.every(Number.isSafeInteger))
    throw new Error(`${name}: integers beyond 2^53 are not exact`);
  return { shape, data: /'fortran_order':\s*True/.test(header) ? inRows(shape, data) : data };
}

/** Numbers in rows, from numbers in columns. */
function inRows(shape: number[], data: number[]): number[] {
  const out = new Array<number>(data.length);
  for (let k = 0; k < data.length; k += 1) {
    let rest = k,
      to = 0;
    const index = shape.map((one) => {
      const at = rest % one;
      rest = (rest - at) / one;
      return at;
    });
    index.forEach((at, axis) => {
      to = to * (shape[axis] ?? 1) + at;
    });
    out[to] = data[k] ?? 0;
  }
  return out;
}

export async function readNpz(file: Uint8Array<ArrayBuffer>): Promise<File> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let end = file.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Error("not a .npz file");
  const found: File = { arrays: {}, names: [] };
  let at = view.getUint32(end + 16, true);
  for (let k = view.getUint16(end + 10, true); k > 0; k -= 1) {
    const method = view.getUint16(at + 10, true),
      sum = view.getUint32(at + 16, true),
      packedSize = view.getUint32(at + 20, true),
      size = view.getUint32(at + 24, true),
      nameSize = view.getUint16(at + 28, true),
      local = view.getUint32(at + 42, true);
    const name = new TextDecoder().decode(file.subarray(at + 46, at + 46 + nameSize)).replace(/\.npy$/, "");
    at += 46 + nameSize + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const part = file.slice(start, start + packedSize);
    if (method !== 0 && method !== 8) throw new Error(`${name}: packed in a way that cannot be read here`);
    if (name.startsWith("x_") && name !== namesOf) continue;
    if (Math.max(size, packedSize) > mostBytes) throw new Error(`${name}: is too large for this page`);
    const bytes = method === 0 ? part : await inflated(part, mostBytes);
    if (crc32(bytes) !== sum) throw new Error(`${name}: its data are damaged`);
    if (Object.hasOwn(found.arrays, name)) throw new Error(`${name}: is there twice`);
    const array = readNpy(name, bytes);
    if (name === namesOf) found.names = array.data as string[];
    else found.arrays[name] = array as Numbers;
  }
  return found;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, k) => {
  let c = k;
  for (let bit = 0; bit < 8; bit += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function crc32(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (const byte of bytes) c = (crcTable[(c ^ byte) & 255] ?? 0) ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

function npy(type: string, shape: number[], body: Uint8Array): Uint8Array {
  const words = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(", ")}${shape.length === 1 ? "," : ""}), }`;
  const length = Math.ceil((10 + words.length + 1) / 64) * 64 - 10;
  const out = new Uint8Array(10 + length + body.length);
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8]);
  out.set(new TextEncoder().encode(`${words.padEnd(length - 1)}\n`), 10);
  out.set(body, 10 + length);
  return out;
}

function arrayFile(name: string, { shape, data }: Numbers): Uint8Array {
  const numbers = Array.from(data);
  if (name === "select" && shape.length === 2) return npy("|b1", shape, Uint8Array.from(numbers));
  if (wholeNumbers.has(name))
    return npy("<i8", shape, new Uint8Array(BigInt64Array.from(numbers.map((one) => BigInt(one))).buffer));
  return npy("<f8", shape, new Uint8Array(Float64Array.from(numbers).buffer));
}

function namesFile(names: string[]): Uint8Array {
  const letters = Math.max(1, ...names.map((name) => [...name].length));
  const codes = new Uint32Array(letters * names.length);
  names.forEach((name, k) => [...name].forEach((one, j) => (codes[k * letters + j] = one.codePointAt(0) ?? 0)));
  return npy(`<U${letters}`, [names.length], new Uint8Array(codes.buffer));
}

/** The file, as numpy.savez would write it; without the time, so that the same task gives the same bytes. */
export function writeNpz(arrays: TaskArrays, names: string[] = []): Uint8Array<ArrayBuffer> {
  const members = Object.entries(arrays).map(([name, array]): [string, Uint8Array] => [name, arrayFile(name, array)]);
  if (names.some((name) => name !== "")) members.push([namesOf, namesFile(names)]);
  const parts: Uint8Array[] = [],
    directory: Uint8Array[] = [];
  let at = 0;
  for (const [name, body] of members) {
    const file = new TextEncoder().encode(`${name}.npy`);
    const shared = new DataView(new ArrayBuffer(26)); // from the version on, as both headers have it
    shared.setUint16(0, 20, true);
    shared.setUint16(8, 0x21, true); // 1 January 1980
    shared.setUint32(10, crc32(body), true);
    shared.setUint32(14, body.length, true);
    shared.setUint32(18, body.length, true);
    shared.setUint16(22, file.length, true);
    const common = new Uint8Array(shared.buffer);
    const local = Uint8Array.of(0x50, 0x4b, 3, 4, ...common);
    const tail = new DataView(new ArrayBuffer(14));
    tail.setUint32(10, at, true);
    directory.push(Uint8Array.of(0x50, 0x4b, 1, 2, 20, 0, ...common, ...new Uint8Array(tail.buffer)), file);
    parts.push(local, file, body);
    at += local.length + file.length + body.length;
  }
  const bytes = directory.reduce((sum, part) => sum + part.length, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, members.length, true);
  end.setUint16(10, members.length, true);
  end.setUint32(12, bytes, true);
  end.setUint32(16, at, true);
  const all = [...parts, ...directory, new Uint8Array(end.buffer)];
  const out = new Uint8Array(at + bytes + 22);
  let to = 0;
  for (const part of all) {
    out.set(part, to);
    to += part.length;
  }
  return out;
}
