// Arrays from the base64 that lapwing.exploring.arrays wrote.

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const TYPED = { f4: Float32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array };

function unshortened(bytes) {
  const bits = new Uint32Array(bytes.length / 3);
  for (let i = 0, at = 0; i < bits.length; i++, at += 3) {
    bits[i] = ((bytes[at] << 8) | (bytes[at + 1] << 16) | (bytes[at + 2] << 24)) >>> 0;
  }
  return new Float32Array(bits.buffer);
}

// {data, rows, columns}, row by row; a vector has one row.
export function unpacked(text) {
  if (!text) return null;
  const bytes = bytesOf(text.data);
  let data = text.kind === "f3" ? unshortened(bytes) : new TYPED[text.kind](bytes.buffer);
  const shape = text.shape;
  const columns = shape.length ? shape[shape.length - 1] : 1;
  if (text.scale) {
    const whole = data;
    data = new Float32Array(whole.length);
    for (let i = 0; i < whole.length; i++) data[i] = whole[i] * text.scale[i % columns];
  }
  return { data, shape, columns, rows: columns ? data.length / columns : 0 };
}

export function columnOf(array, index) {
  const values = new Float64Array(array.rows);
  for (let i = 0, at = index; i < array.rows; i++, at += array.columns) values[i] = array.data[at];
  return values;
}

export function rowOf(array, index) {
  return array.data.subarray(index * array.columns, (index + 1) * array.columns);
}

export function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}
