// The policy of a painted reward: value iteration, as lapwing.solving.dynamic_programming does it.

const TOLERANCE = 1e-6;

// {values, next}: what arriving again and again is worth, and the best move of each state.
export function solved(moves, rewards, gamma, begin) {
  const count = moves.rows, actions = moves.columns;
  let values = begin ? begin.slice() : new Float64Array(count), following = new Float64Array(count);
  const [low, high] = extent(rewards), enough = TOLERANCE * Math.max(Math.abs(low), Math.abs(high));
  const worth = new Float64Array(count);
  for (let change = Infinity; change > enough && Number.isFinite(enough) && enough > 0;) {
    for (let i = 0; i < count; i++) worth[i] = rewards[i] + gamma * values[i];
    change = 0;
    for (let i = 0; i < count; i++) {
      let best = -Infinity;
      for (let a = 0; a < actions; a++) best = Math.max(best, worth[moves.data[i * actions + a]]);
      following[i] = best;
      change = Math.max(change, Math.abs(best - values[i]));
    }
    [values, following] = [following, values];
  }
  if (!(enough > 0)) values.fill(0);
  for (let i = 0; i < count; i++) worth[i] = rewards[i] + gamma * values[i];
  const next = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    let best = moves.data[i * actions];
    for (let a = 1; a < actions; a++) {
      if (worth[moves.data[i * actions + a]] > worth[best]) best = moves.data[i * actions + a];
    }
    next[i] = best;
  }
  return { values, next };
}
