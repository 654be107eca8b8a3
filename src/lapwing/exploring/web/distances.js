// Distances to a goal, as lapwing.laplacian.distances has them, and walks that go down them.

// Of every state to a goal, by a filter and the first `dims` eigenfunctions.
export function distancesTo(model, goal, filter, dims) {
  if (filter === "soft") return euclidean(model.phi, goal.phi, 0, model.phi.columns);
  const weights = model.filters[filter];
  const last = Math.min(dims, weights.length + 1);
  const table = model.functions, d = table.columns, found = new Float64Array(table.rows);
  for (let i = 0; i < found.length; i++) {
    let sum = 0;
    for (let j = 1; j < last; j++) {
      const apart = goal.functions[j] - table.data[i * d + j], square = weights[j - 1] ** 2;
      sum += filter === "hitting" ? square * goal.functions[j] * apart : square * apart * apart;
    }
    found[i] = filter === "hitting" ? sum : Math.sqrt(sum);
  }
  return found;
}

export function euclidean(table, goal, first, last) {
  const d = table.columns, found = new Float64Array(table.rows);
  for (let i = 0; i < found.length; i++) {
    let sum = 0;
    for (let j = first; j < last; j++) sum += (table.data[i * d + j] - goal[j]) ** 2;
    found[i] = Math.sqrt(sum);
  }
  return found;
}

// The neighbour that each state goes to, itself where none is nearer to the goal.
export function greedy(neighbours, values) {
  const most = neighbours.columns, next = new Int32Array(neighbours.rows);
  for (let i = 0; i < next.length; i++) {
    let best = i;
    for (let a = 0; a < most; a++) {
      const there = neighbours.data[i * most + a];
      if (values[there] < values[best]) best = there;
    }
    next[i] = best;
  }
  return next;
}

export function walk(next, start) {
  const path = [start], seen = new Set(path);
  for (;;) {
    const there = next[path[path.length - 1]];
    if (seen.has(there)) return path;
    path.push(there);
    seen.add(there);
  }
}

// The fewest moves from every state to a goal, along neighbours.
export function stepsTo(neighbours, goal) {
  const count = neighbours.rows, most = neighbours.columns;
  const heads = new Int32Array(count + 1);
  for (let i = 0; i < count * most; i++) heads[neighbours.data[i] + 1]++;
  for (let i = 0; i < count; i++) heads[i + 1] += heads[i];
  const tails = new Int32Array(count * most), filled = heads.slice();
  for (let i = 0; i < count; i++) {
    for (let a = 0; a < most; a++) tails[filled[neighbours.data[i * most + a]]++] = i;
  }
  const steps = new Float64Array(count).fill(Infinity), queue = new Int32Array(count);
  steps[goal] = 0;
  queue[0] = goal;
  for (let at = 0, end = 1; at < end; at++) {
    const here = queue[at];
    for (let e = heads[here]; e < heads[here + 1]; e++) {
      const before = tails[e];
      if (steps[before] === Infinity) {
        steps[before] = steps[here] + 1;
        queue[end++] = before;
      }
    }
  }
  return steps;
}

// Those that are alike share a rank: the middle of the places that they have in order.
function ranks(values) {
  const sorted = Float64Array.from(values).sort(), found = new Float64Array(values.length);
  const before = (value, orAt) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value || (orAt && sorted[middle] === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  for (let i = 0; i < found.length; i++) found[i] = (before(values[i], false) + before(values[i], true) - 1) / 2;
  return found;
}

// Spearman's correlation; 0 where either is constant.
export function rankCorrelation(first, second) {
  const a = ranks(first), b = ranks(second), mean = (a.length - 1) / 2;
  let ab = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) ** 2;
    bb += (b[i] - mean) ** 2;
  }
  return aa && bb ? ab / Math.sqrt(aa * bb) : 0;
}
