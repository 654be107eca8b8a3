// Colour maps, the same as in the pictures: 256 colours each, as hexadecimal digits.

export function colourMap(digits) {
  const found = { css: [], bytes: new Uint8Array(256 * 3), bright: [] };
  for (let i = 0; i < 256; i++) {
    const hex = digits.slice(6 * i, 6 * i + 6);
    found.css.push(`#${hex}`);
    for (let c = 0; c < 3; c++) found.bytes[3 * i + c] = parseInt(hex.slice(2 * c, 2 * c + 2), 16);
    const [r, g, b] = found.bytes.subarray(3 * i, 3 * i + 3);
    found.bright.push(0.299 * r + 0.587 * g + 0.114 * b > 140);
  }
  return found;
}

// Which of the 256 colours each number has; -1 for what is not finite.
export function shades(values, [low, high]) {
  const found = new Int16Array(values.length), factor = high > low ? 255 / (high - low) : 0;
  for (let i = 0; i < values.length; i++) {
    const at = Math.round((values[i] - low) * factor);
    found[i] = Number.isFinite(values[i]) ? Math.max(0, Math.min(255, at)) : -1;
  }
  return found;
}

// A range with 0 in the middle; for functions with outliers, to where all but one in a hundred are.
export function symmetric(values) {
  const sizes = Float64Array.from(values, Math.abs).sort();
  const limit = sizes[Math.floor((sizes.length - 1) * 0.995)] || sizes[sizes.length - 1] || 1;
  return [-limit, limit];
}
