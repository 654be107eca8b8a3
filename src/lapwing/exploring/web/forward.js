// φ of any observation: the same matrices as lapwing.laplacian.forward, multiplied here.

function affine(x, weight, bias) {
  const inputs = weight.rows, outputs = weight.columns;
  const y = new Float64Array(outputs);
  for (let i = 0; i < inputs; i++) {
    const value = x[i];
    if (value === 0) continue;
    const begin = i * outputs;
    for (let j = 0; j < outputs; j++) y[j] += value * weight.data[begin + j];
  }
  if (bias) for (let j = 0; j < outputs; j++) y[j] += bias.data[j];
  return y;
}

function rectified(x) {
  for (let i = 0; i < x.length; i++) if (x[i] < 0) x[i] = 0;
  return x;
}

function waves(angles) {
  const half = angles.length, found = new Float64Array(2 * half);
  for (let i = 0; i < half; i++) {
    found[i] = Math.sin(angles[i]);
    found[half + i] = Math.cos(angles[i]);
  }
  return found;
}

function bumps(z, centres, width) {
  const count = centres.columns, found = new Float64Array(z.length + count);
  found.set(z);
  const squares = found.subarray(z.length);
  for (let i = 0; i < z.length; i++) {
    for (let j = 0; j < count; j++) {
      const apart = z[i] - centres.data[i * count + j];
      squares[j] += apart * apart;
    }
  }
  for (let j = 0; j < count; j++) squares[j] = Math.exp(-squares[j] / (2 * width * width));
  return found;
}

function ofCentred(weights, x) {
  for (const stage of weights.before) x = ofCentred(stage, x);
  if (weights.directions) {
    const along = affine(x, weights.directions, null);
    x = weights.centres ? bumps(along, weights.centres, weights.width) : waves(along);
  }
  weights.layers.forEach((layer, index) => {
    x = affine(x, layer.weight, layer.bias);
    if (index < weights.layers.length - 1) rectified(x);
  });
  return x;
}

function padding(size, kernel, stride) {
  const outputs = Math.ceil(size / stride);
  const zeros = Math.max((outputs - 1) * stride + kernel - size, 0);
  return [outputs, Math.floor(zeros / 2)];
}

// A convolution with SAME padding, then relu; images are row by row, channels last.
function convolved(image, height, width, depth, layer, kernel, stride) {
  const [rows, above] = padding(height, kernel, stride);
  const [columns, left] = padding(width, kernel, stride);
  const channels = layer.weight.columns, found = new Float64Array(rows * columns * channels);
  const window = new Float64Array(kernel * kernel * depth);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      window.fill(0);
      for (let i = 0; i < kernel; i++) {
        const y = row * stride + i - above;
        if (y < 0 || y >= height) continue;
        for (let j = 0; j < kernel; j++) {
          const x = column * stride + j - left;
          if (x < 0 || x >= width) continue;
          for (let c = 0; c < depth; c++) {
            window[(i * kernel + j) * depth + c] = image[(y * width + x) * depth + c];
          }
        }
      }
      found.set(rectified(affine(window, layer.weight, layer.bias)), (row * columns + column) * channels);
    }
  }
  return { image: found, height: rows, width: columns, depth: channels };
}

function ofImage(network, x) {
  let [height, width, depth] = network.shape, image = x;
  const { layers, strides } = network.weights;
  strides.forEach((stride, index) => {
    ({ image, height, width, depth } =
      convolved(image, height, width, depth, layers[index], network.kernel, stride));
  });
  const last = layers[layers.length - 1];
  return affine(image, last.weight, last.bias);
}

function openedWeights(weights) {
  const opened = { ...weights, before: weights.before.map(openedWeights) };
  opened.layers = weights.layers.map(({ weight, bias }) => ({ weight: unpacked(weight), bias: unpacked(bias) }));
  for (const name of ["shift", "directions", "centres"]) opened[name] = unpacked(weights[name]);
  return opened;
}

// A function from an observation (an index, a vector, or pixels in [0, 1]) to φ.
export function forwardOf(described) {
  if (!described) return null;
  let network = null;  // opened when it is first asked: the first drawing needs none
  return (observation) => {
    network = network || { ...described, weights: openedWeights(described.weights) };
    const { weights, shape } = network;
    if (!shape.length) {
      const table = weights.layers[0];
      return Float64Array.from(rowOf(table.weight, observation), (value, j) => value + table.bias.data[j]);
    }
    const x = Float64Array.from(observation, (value, i) => value - weights.shift.data[i]);
    return shape.length === 3 && !weights.centres ? ofImage(network, x) : ofCentred(weights, x);
  };
}

// The eigenfunctions that φ gives.
export function combined(phi, coefficients) {
  const d = coefficients.columns, found = new Float64Array(d);
  for (let j = 0; j < d; j++) found[j] = coefficients.data[j];
  for (let i = 0; i < phi.length; i++) {
    for (let j = 0; j < d; j++) found[j] += phi[i] * coefficients.data[(i + 1) * d + j];
  }
  return found;
}
