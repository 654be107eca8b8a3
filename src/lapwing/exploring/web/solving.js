// The policy of a painted reward: where value iteration comes to rest, as lapwing.solving.dynamic_programming has it.

const TOLERANCE = 1e-6, SWEEPS = 30;

// What follows each action: row a · states + s has the ends from heads[row] on, each with its share. A row
// without an end is an action that was never seen there.
export function movesAsDynamics(moves, names) {
  const { rows: count, columns: actions } = moves, ends = new Uint32Array(count * actions);
  for (let i = 0; i < count; i++) for (let a = 0; a < actions; a++) ends[a * count + i] = moves.data[i * actions + a];
  const heads = Uint32Array.from({ length: ends.length + 1 }, (_, row) => row);
  return { count, actions, names, heads, ends, shares: new Float64Array(ends.length).fill(1), certain: true };
}

export function openedDynamics(described) {
  const { actions } = described, entries = unpacked(described.entries).data;
  const heads = new Uint32Array(entries.length + 1), shares = Float64Array.from(unpacked(described.shares).data);
  entries.forEach((each, row) => { heads[row + 1] = heads[row] + each; });
  for (let row = 0; row < entries.length; row++) {
    const part = shares.subarray(heads[row], heads[row + 1]), all = part.reduce((sum, share) => sum + share, 0);
    for (let e = 0; e < part.length; e++) part[e] /= all || 1;
  }
  const names = Array.from({ length: actions }, (_, action) => `action ${action}`);
  const certain = entries.every((each) => each === 1);
  return { count: entries.length / actions, actions, names, heads, ends: unpacked(described.ends).data, shares, certain };
}

// What an action is worth in a state, if arriving anywhere is worth so much; -∞ if it was never seen.
export function worthOf({ count, heads, ends, shares }, worth, state, action) {
  const row = action * count + state, last = heads[row + 1];
  if (heads[row] === last) return -Infinity;
  let sum = 0;
  for (let e = heads[row]; e < last; e++) sum += shares[e] * worth[ends[e]];
  return sum;
}

// {values, best, worth}: the largest return from each state, the action that has it, and what arriving is worth.
// Between two sweeps over all actions the best one alone is followed: it ends as value iteration does, sooner.
export function solved(dynamics, rewards, gamma, begin) {
  const { count, actions, heads, ends, shares, certain } = dynamics, best = new Int32Array(count);
  const [low, high] = extent(rewards), enough = TOLERANCE * Math.max(Math.abs(low), Math.abs(high));
  const worth = new Float64Array(count), values = begin && enough > 0 ? begin.slice() : new Float64Array(count);
  for (let i = 0; i < count; i++) worth[i] = rewards[i] + gamma * values[i];
  const improved = () => {
    let change = 0;
    for (let i = 0; i < count; i++) {
      let most = -Infinity;
      for (let a = 0; a < actions; a++) {
        const each = certain ? worth[ends[a * count + i]] : worthOf(dynamics, worth, i, a);
        if (each > most) {
          most = each;
          best[i] = a;
        }
      }
      if (most === -Infinity) continue;
      change = Math.max(change, Math.abs(most - values[i]));
      values[i] = most;
    }
    return change;
  };
  const followed = () => {
    for (let i = 0; i < count; i++) {
      const row = best[i] * count + i, last = heads[row + 1];
      if (heads[row] === last) continue;
      let sum = 0;
      for (let e = heads[row]; e < last; e++) sum += shares[e] * worth[ends[e]];
      values[i] = sum;
      worth[i] = rewards[i] + gamma * sum;
    }
  };
  while (improved() > enough) {
    if (certain) returnsAlong(best.map((a, i) => ends[a * count + i]), rewards, gamma, values);
    for (let i = 0; i < count; i++) worth[i] = rewards[i] + gamma * values[i];
    for (let sweep = 0; sweep < SWEEPS && !certain; sweep++) followed();
  }
  return { values, best, worth };
}

// The returns where each state has one that follows: round the cycle that every path ends in, then back along it.
function returnsAlong(next, rewards, gamma, values) {
  const [UNKNOWN, MET, KNOWN] = [0, 1, 2], status = new Uint8Array(next.length);
  for (let begin = 0; begin < next.length; begin++) {
    const path = [];
    let here = begin;
    for (; status[here] === UNKNOWN; here = next[here]) {
      status[here] = MET;
      path.push(here);
    }
    if (status[here] === MET) {
      let sum = 0, factor = 1, at = here;
      do {
        at = next[at];
        sum += factor * rewards[at];
        factor *= gamma;
      } while (at !== here);
      values[here] = sum / (1 - factor);
    }
    for (const each of path.reverse()) {
      values[each] = rewards[next[each]] + gamma * values[next[each]];
      status[each] = KNOWN;
    }
  }
}

// The likeliest state to follow each, by its best action.
export function likeliest({ count, heads, ends, shares }, best) {
  return Int32Array.from(best, (action, i) => {
    let found = i, most = 0;
    for (let e = heads[action * count + i]; e < heads[action * count + i + 1]; e++) {
      if (shares[e] > most) [found, most] = [ends[e], shares[e]];
    }
    return found;
  });
}

// Where each state is expected to be drawn after its best action: x and y, state by state.
export function expectedPoints({ count, heads, ends, shares }, best, points) {
  const found = Float64Array.from(points.data);
  best.forEach((action, i) => {
    const row = action * count + i;
    if (heads[row] < heads[row + 1]) found[2 * i] = found[2 * i + 1] = 0;
    for (let e = heads[row]; e < heads[row + 1]; e++) {
      for (let axis = 0; axis < 2; axis++) found[2 * i + axis] += shares[e] * points.data[2 * ends[e] + axis];
    }
  });
  return found;
}
