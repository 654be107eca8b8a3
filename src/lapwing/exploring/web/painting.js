// A painted reward: brush strokes over the drawing, what they give each state, and the words for lapwing.solve.

// Of each state the value of the last stroke that covers it. A stroke is an ellipse, or a state by itself.
export function paintedRewards(strokes, points) {
  const rewards = new Float64Array(points.rows);
  for (const { state, x, y, rx, ry, value } of strokes) {
    if (state !== undefined) rewards[state] = value;
    else for (let i = 0; i < rewards.length; i++) {
      if (((points.data[2 * i] - x) / rx) ** 2 + ((points.data[2 * i + 1] - y) / ry) ** 2 < 1) rewards[i] = value;
    }
  }
  return rewards;
}

// The command for a maze; Python for the rest: an array where states are enumerated, else a function.
export function solvingWords(model, strokes, rewards, gamma) {
  const { run, title, actions } = model.data;
  if (model.data.moves) return solveCommand(model, rewards, gamma, run.path || title);
  const named = python(run.path || "RUN"), lines = ["import lapwing", "import numpy as np", ""];
  if (actions.enumerated !== null) {
    const states = unpacked(actions.states).data;
    lines.push(`rewards = np.zeros(${actions.enumerated})`);
    for (const value of new Set(rewards.filter((reward) => reward !== 0))) {
      const there = Array.from(states.filter((_, i) => rewards[i] === value));
      lines.push(`rewards[[${there.join(", ")}]] = ${value}`);
    }
    lines.push(`policy = lapwing.solve(${named}, rewards, gamma=${gamma})`);
    return lines.join("\n");
  }
  if (actions.drawn.startsWith("rep.")) lines.push(`rep = lapwing.load(${named})`);
  const digits = (value) => String(+value.toPrecision(4));
  lines.push("strokes = [  # x, y, their radii, the reward",
    ...strokes.map(({ x, y, rx, ry, value }) => `    (${[x, -y, rx, ry].map(digits).join(", ")}, ${value}),`), "]", "",
    "def reward(seen):", `    x, y = ${actions.drawn}.T`, "    found = np.zeros(len(seen))",
    "    for a, b, wide, high, value in strokes:",
    "        found[((x - a) / wide) ** 2 + ((y - b) / high) ** 2 < 1] = value", "    return found", "",
    `policy = lapwing.solve(${named}, reward, gamma=${gamma})`);
  return lines.join("\n");
}

function solveCommand(model, rewards, gamma, named) {
  const cells = [];
  rewards.forEach((reward, state) => {
    const [x, y] = rowOf(model.points, state);
    if (reward !== 0) cells.push(`${reward === 1 ? "goal" : reward}=${Math.floor(y)},${Math.floor(x)}`);
  });
  return `lapwing solve ${quoted(named)} --reward ${quoted(cells.join(" ") || "goal=ROW,COLUMN")} --gamma ${gamma}`;
}

function quoted(words) {
  return /^[\w.,:=/-]+$/.test(words) ? words : `'${words.replaceAll("'", "'\\''")}'`;
}

function python(words) {
  return JSON.stringify(words);
}
