// Paint a reward: what it is worth to be anywhere, and the best move from there, at once.

const BRUSHES = [["1", "+1"], ["5", "+5"], ["-1", "−1"], ["-5", "−5"], ["0", "erase"]];

export function rewardView(app) {
  const { model } = app;
  if (!model.data.scene.actions) {
    const element = h("section", { class: "view" }, h("p", { class: "lead" },
      "Painting needs to know what each action does. The page knows that of mazes; of this data it does not. " +
      "With discrete actions recorded, lapwing.solve(run, reward) finds the policy in Python."));
    return { element, render: () => {} };
  }
  const rewards = new Float64Array(model.count);
  let values = null, brush = 1, gamma = 0.98;
  rewards[app.state.goal.state] = 1;
  const paint = (place) => {
    rewards[place.state] = brush;
    app.set({ hover: place.state });
  };
  const canvasHover = (hover) => app.set({ hover });
  const ondrag = (start) => app.set({ start });
  const painted = new StateMap(model, "the reward, to paint on", { onpick: paint, onhover: canvasHover });
  const worth = new StateMap(model, "values and best moves", { onpick: ondrag, onhover: canvasHover, ondrag });
  const brushes = h("div", { class: "brushes", role: "radiogroup", "aria-label": "brush" }, BRUSHES.map(([value, words]) => {
    const input = h("input", { type: "radio", name: "brush", value, "aria-label": `brush ${words}` });
    input.checked = value === "1";
    input.addEventListener("change", () => { brush = Number(value); });
    return h("label", {}, input, h("span", {}, words));
  }));
  const discount = slider("discount γ", {
    min: 0.5, max: 0.99, step: 0.01, value: gamma, show: (value) => value.toFixed(2),
    oninput: (value) => { gamma = value; values = null; app.refresh(); },
  });
  const clear = h("button", { type: "button", onclick: () => { rewards.fill(0); values = null; app.refresh(); } }, "clear");
  const command = h("div"), numbers = h("div"), below = h("div"), under = h("div");
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Paint what arriving in a cell is worth, by mouse, finger, or arrow keys and Enter. " +
      "The policy is that of lapwing.solve: value iteration over the maze's moves. Click the right map to move the start."),
    h("div", { class: "controls" }, brushes, discount.element, clear),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "reward")), painted.canvas, under),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "value and policy")), worth.canvas, below),
      h("aside", { class: "side" }, numbers)),
    command);

  function render({ hover, start }) {
    discount.set(gamma);
    const found = solved(model.neighbours, rewards, gamma, values);
    ({ values } = found);
    const limit = Math.max(1, ...extent(rewards).map(Math.abs)), colours = app.colours.diverging;
    painted.draw({ values: rewards, range: [-limit, limit], colours, hover });
    under.replaceChildren(legend(colours, [-limit, limit], "on arriving"));
    const any = rewards.some((reward) => reward !== 0), range = extent(values);
    const path = any ? walk(found.next, start.state) : [start.state];
    worth.draw({
      values, range, colours: app.colours.reward, next: any ? found.next : null, start, hover,
      paths: [{ points: path.map((each) => Array.from(rowOf(model.points, each))), colour: "#0b6e4f" }],
      says: `the value of the start is ${shown(values[start.state])}`,
    });
    below.replaceChildren(legend(app.colours.reward, range, "value"));
    numbers.replaceChildren(facts([
      ["value of the start", shown(values[start.state], 4)],
      ["mean value", shown(mean(values), 4)],
      ["path", `${path.length - 1} steps, then it stays or comes round`],
      hover === null ? null : [nameOf(model, { state: hover }), shown(values[hover], 4)],
    ]));
    command.replaceChildren(code(solveCommand(model, rewards, gamma), "the command that solves this reward"));
  }
  return { element, render };
}

function solveCommand(model, rewards, gamma) {
  const cells = [];
  rewards.forEach((reward, state) => {
    const [x, y] = rowOf(model.points, state);
    if (reward !== 0) cells.push(`${reward === 1 ? "goal" : reward}=${Math.floor(y)},${Math.floor(x)}`);
  });
  const named = model.data.run.path || model.data.title;
  return `lapwing solve ${quoted(named)} --reward ${quoted(cells.join(" ") || "goal=ROW,COLUMN")} --gamma ${gamma}`;
}

function quoted(words) {
  return /^[\w.,:=/-]+$/.test(words) ? words : `'${words.replaceAll("'", "'\\''")}'`;
}
