// The exact spectrum of a drawn maze. This file runs by itself, in a worker.

// The floor as states in reading order, its largest connected part; what leads where, and P of random moves.
function chainOf(lines) {
  const height = lines.length, width = lines[0].length;
  const part = Array.from({ length: height }, () => new Int32Array(width).fill(-1));
  const sizes = [];
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      if (lines[row][column] === "#" || part[row][column] >= 0) continue;
      const queue = [[row, column]];
      part[row][column] = sizes.length;
      for (let at = 0; at < queue.length; at++) {
        for (const [dy, dx] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
          const y = queue[at][0] + dy, x = queue[at][1] + dx;
          if (y < 0 || y >= height || x < 0 || x >= width || lines[y][x] === "#" || part[y][x] >= 0) continue;
          part[y][x] = sizes.length;
          queue.push([y, x]);
        }
      }
      sizes.push(queue.length);
    }
  }
  const largest = sizes.indexOf(Math.max(...sizes)), cells = [];
  const state = Array.from({ length: height }, () => new Int32Array(width).fill(-1));
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      if (part[row][column] !== largest) continue;
      state[row][column] = cells.length;
      cells.push([row, column]);
    }
  }
  const moves = new Int32Array(cells.length * 4);
  cells.forEach(([row, column], i) => {
    [[-1, 0], [1, 0], [0, -1], [0, 1]].forEach(([dy, dx], a) => {
      const there = (state[row + dy] || [])[column + dx];
      moves[4 * i + a] = there === undefined || there < 0 ? i : there;
    });
  });
  return { cells, moves, dropped: sizes.reduce((sum, size) => sum + size, 0) - cells.length };
}

// Householder: A = Q T Q', with T tridiagonal. A is overwritten with Q.
function tridiagonal(a, n) {
  const diagonal = new Float64Array(n), beside = new Float64Array(n);
  const reflectors = [];
  for (let k = 0; k < n - 2; k++) {
    let norm = 0;
    for (let i = k + 1; i < n; i++) norm += a[i * n + k] ** 2;
    norm = Math.sqrt(norm);
    const v = new Float64Array(n);
    let length = 0;
    if (norm > 0) {
      const alpha = a[(k + 1) * n + k] > 0 ? -norm : norm;
      for (let i = k + 1; i < n; i++) v[i] = a[i * n + k];
      v[k + 1] -= alpha;
      for (let i = k + 1; i < n; i++) length += v[i] * v[i];
    }
    if (length > 0) {
      const p = new Float64Array(n);
      let inner = 0;
      for (let i = k; i < n; i++) {
        let sum = 0;
        for (let j = k + 1; j < n; j++) sum += a[i * n + j] * v[j];
        p[i] = 2 * sum / length;
        inner += p[i] * v[i];
      }
      for (let i = k; i < n; i++) p[i] -= inner / length * v[i];
      for (let i = k; i < n; i++) {
        for (let j = k; j < n; j++) a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
      }
      reflectors.push([k, v, length]);
    }
  }
  for (let i = 0; i < n; i++) {
    diagonal[i] = a[i * n + i];
    beside[i] = i + 1 < n ? a[(i + 1) * n + i] : 0;
  }
  a.fill(0);
  for (let i = 0; i < n; i++) a[i * n + i] = 1;
  for (const [k, v, length] of reflectors.reverse()) {
    for (let j = k + 1; j < n; j++) {
      let sum = 0;
      for (let i = k + 1; i < n; i++) sum += v[i] * a[i * n + j];
      sum *= 2 / length;
      for (let i = k + 1; i < n; i++) a[i * n + j] -= sum * v[i];
    }
  }
  return { diagonal, beside };
}

// QL with implicit shifts, one eigenvalue after the other; `rows` holds Q', whose rows turn into eigenvectors.
function quickLower(diagonal, beside, rows, n) {
  for (let low = 0; low < n; low++) {
    for (let round = 0; ; round++) {
      let end = low;
      while (end < n - 1) {
        const size = Math.abs(diagonal[end]) + Math.abs(diagonal[end + 1]);
        if (Math.abs(beside[end]) <= Number.EPSILON * size) break;
        end++;
      }
      if (end === low) break;
      if (round > 60) throw new Error("the eigenvalues do not converge");
      let g = (diagonal[low + 1] - diagonal[low]) / (2 * beside[low]), r = Math.hypot(g, 1);
      g = diagonal[end] - diagonal[low] + beside[low] / (g + (g < 0 ? -r : r));
      let s = 1, c = 1, p = 0, i = end - 1;
      for (; i >= low; i--) {
        const f = s * beside[i], b = c * beside[i];
        r = Math.hypot(f, g);
        beside[i + 1] = r;
        if (r === 0) {
          diagonal[i + 1] -= p;
          beside[end] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * s + 2 * c * b;
        p = s * r;
        diagonal[i + 1] = g + p;
        g = c * r - b;
        const upper = (i + 1) * n, lower = i * n;
        for (let k = 0; k < n; k++) {
          const above = rows[upper + k], below = rows[lower + k];
          rows[upper + k] = s * below + c * above;
          rows[lower + k] = c * below - s * above;
        }
      }
      if (r === 0 && i >= low) continue;
      diagonal[low] -= p;
      beside[low] = g;
      beside[end] = 0;
    }
  }
}

// The first eigenpairs of I - P: eigenvalues, and functions (state by state) with mean square 1.
function spectrumOf(moves, count) {
  const n = moves.length / 4, a = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    a[i * n + i] += 1;
    for (let move = 0; move < 4; move++) a[i * n + moves[4 * i + move]] -= 0.25;
  }
  const { diagonal, beside } = tridiagonal(a, n), rows = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) rows[j * n + i] = a[i * n + j];
  quickLower(diagonal, beside, rows, n);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[i] - diagonal[j]).slice(0, count);
  const functions = new Float64Array(n * order.length), eigenvalues = order.map((i) => diagonal[i]);
  order.forEach((row, k) => {
    for (let i = 0; i < n; i++) functions[i * order.length + k] = rows[row * n + i] * Math.sqrt(n);
  });
  return { eigenvalues, functions };
}

function mazeSpectrum(lines, count) {
  const began = performance.now(), { cells, moves, dropped } = chainOf(lines);
  const found = spectrumOf(moves, count);
  return { cells, moves, dropped, ...found, milliseconds: performance.now() - began };
}

if (typeof WorkerGlobalScope !== "undefined") {
  onmessage = ({ data }) => postMessage({ id: data.id, ...mazeSpectrum(data.lines, data.count) });
}
