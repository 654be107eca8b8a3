// A goal, how far it is from everywhere, and where going downhill leads; plain Euclid beside.

const FILTER_WORDS = {
  soft: "soft: φ as it was learned", unit: "unit: all alike", commute: "commute: 1/√λ",
  biharmonic: "biharmonic: 1/λ", heat: "heat: slow ones only", hitting: "hitting: expected steps",
};
const SHOWN = [["distance", "distance"], ["laplacian", "reward −distance"], ["mix", "reward mix: ½ −distance, ½ sparse"]];

const CLOSE = 2;  // where states are a sample, so many steps from the goal are near enough

export function distancesView(app) {
  const { model } = app;
  const onhover = (hover) => app.set({ hover });
  const onpick = (goal) => app.set({ goal });
  const ondrag = (start) => app.set({ start });
  const ours = new StateMap(model, "distance in φ", { onpick, onhover, ondrag });
  const plain = new StateMap(model, "Euclidean distance", { onpick, onhover, ondrag });
  const names = Object.keys(model.filters);
  const filter = choice("filter", names.map((name) => [name, FILTER_WORDS[name] || name]), app.state.filter,
    (value) => app.set({ filter: value }));
  const show = choice("show", SHOWN, app.state.show, (value) => app.set({ show: value }));
  const dims = slider("eigenfunctions used", {
    min: Math.min(2, model.dim), max: model.dim, value: app.state.dims, show: (value) => `${value} of ${model.dim}`,
    oninput: (value) => app.set({ dims: value }),
  });
  const ourFacts = h("div"), plainFacts = h("div"), ourLegend = h("div"), plainLegend = h("div");
  const planned_ = h("p", { class: "dim" }), picture = pictureOf(app), unseen = observationForm(app) || imageForm(app);
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Click anywhere to set the goal ", h("b", { class: "goal" }, "★"), ", drag the start ",
      h("b", { class: "start" }, "●"), ". Arrows go to the neighbour that is nearest to the goal; a ",
      h("b", { class: "trap" }, "ring"), " marks a trap, where no neighbour is nearer. ",
      h("span", { class: "dim" }, "Keys: arrows move, Enter sets the goal, S the start.")),
    h("div", { class: "controls" }, filter.element, dims.element, show.element),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "by φ")), ours.canvas, ourLegend, ourFacts, planned_),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "by Euclid")), plain.canvas, plainLegend, plainFacts),
      picture.element || unseen ? h("aside", { class: "side" }, picture.element, unseen) : null));

  function render(state) {
    const { goal, start, hover } = state;
    filter.select.value = state.filter;
    dims.set(state.dims);
    dims.input.disabled = state.filter === "soft";
    const steps = model.neighbours ? stepsTo(model.neighbours, goal.state) : null;
    const table = euclideanTable(model), at = euclideanGoal(model, goal), written = [];
    for (const [map, values, holder, below, name] of [
      [ours, distancesTo(model, goal, state.filter, state.dims), ourFacts, ourLegend, "by φ"],
      [plain, euclidean(table, at, 0, table.columns), plainFacts, plainLegend, "by Euclid"],
    ]) {
      const next = model.neighbours ? greedy(model.neighbours, values) : null;
      const path = next ? walk(next, start.state) : [start.state];
      const there = (i) => Boolean(steps) && steps[i] <= (model.scene.discrete ? 0 : CLOSE);
      const reached = there(path[path.length - 1]) || path.includes(goal.state);
      const traps = next ? Array.from(next.keys()).filter((i) => next[i] === i && !there(i) && steps[i] < Infinity) : [];
      const drawn = state.show === "distance" ? values : rewarded(values, goal, state.show);
      const colours = state.show === "distance" ? app.colours.distance : app.colours.reward;
      const range = extent(drawn);
      const points = path.map((each) => Array.from(rowOf(model.points, each)));
      map.draw({
        values: drawn, range, colours, next, goal, start, hover, traps: model.scene.lines ? traps : [],
        paths: [...planPath(model, state, map === ours), { points, colour: reached ? "#0b6e4f" : "#a4161a" }],
        says: `${name}: the walk from the start ${reached ? "reaches the goal" : "is trapped"} after ${path.length - 1} steps`,
      });
      written.push(() => {
        below.replaceChildren(legend(colours, range, state.show === "distance" ? "to the goal" : "reward"));
        holder.replaceChildren(facts(describeWalk(model, { path, reached, next, traps, steps, start, values, hover })));
      });
    }
    for (const write of written) write();  // after both drawings, for these ask how large they are
    planned_.textContent = planWords(model, state);
    picture.render(hover ?? goal.state);
  }
  return { element, render };
}

function describeWalk(model, { path, reached, next, traps, steps, start, values, hover }) {
  const shortest = steps ? steps[start.state] : null;
  return [
    next ? ["greedy path", reached ? `reaches the goal in ${path.length - 1} steps` : `trapped after ${path.length - 1} steps`] : null,
    next ? ["shortest way", Number.isFinite(shortest) ? `${shortest} steps` : "none"] : null,
    next ? ["traps", `${traps.length} of ${model.count.toLocaleString("en")} states`] : null,
    steps && model.scene.discrete ? ["rank correlation with steps", shown(rankCorrelation(values, steps))] : null,
    ["distance of the start", shown(values[start.state], 4)],
    hover === null ? null : [`distance at ${nameOf(model, { state: hover })}`, shown(values[hover], 4)],
  ];
}

// Of arriving in each state: -distance, or half of it and half of -1 wherever the goal is not.
function rewarded(values, goal, form) {
  const rewards = Float64Array.from(values, (value) => -value);
  if (form === "mix") for (let i = 0; i < rewards.length; i++) rewards[i] = 0.5 * rewards[i] - 0.5 * (i !== goal.state);
  return rewards;
}

// Where there is a floor plan, distances over it; else those of the observations.
function euclideanTable(model) {
  return model.scene.lines || !model.observations ? model.points : model.observations;
}

function euclideanGoal(model, goal) {
  if (euclideanTable(model) === model.points) return goal.point;
  return goal.observation || rowOf(model.observations, goal.state);
}

function planPath(model, { start, goal }, ours) {
  const found = ours && model.plan ? planned(model.plan, model, start, goal) : null;
  if (!found) return [];
  const points = found.route.map((landmark) => Array.from(rowOf(model.plan.points, landmark)));
  return [{ points: [start.point, ...points, goal.point], colour: "#2b6cb0", dashed: true }];
}

function planWords(model, { start, goal }) {
  if (!model.plan) return "";
  const found = planned(model.plan, model, start, goal);
  return found ? `The reacher's plan (dashed): ${found.route.length} landmarks, ${Math.round(found.steps)} steps.`
    : "The reacher knows no way there.";
}

// Observations of a few numbers can be written down: φ of what was never seen becomes the goal.
function observationForm(app) {
  const { model } = app, features = model.observations ? model.observations.columns : 0;
  if (!model.forward || features < 2 || features > 8 || model.scene.discrete) return null;
  const inputs = Array.from({ length: features }, (_, i) =>
    h("input", { type: "number", step: "any", "aria-label": `feature ${i}`, value: "0" }));
  const fill = () => {
    const { goal } = app.state, seen = goal.observation || rowOf(model.observations, goal.state);
    inputs.forEach((input, i) => { input.value = shown(seen[i], 4); });
  };
  fill();
  const submit = (event) => {
    event.preventDefault();
    const observation = inputs.map((input) => Number(input.value));
    if (!observation.every(Number.isFinite)) return;
    const phi = model.forward(observation), functions = combined(phi, model.coefficients);
    const state = nearestFunctions(model, functions);
    app.set({ goal: { state, point: Array.from(rowOf(model.points, state)), observation, phi, functions } });
  };
  return h("form", { class: "unseen", onsubmit: submit },
    h("h3", {}, "A goal of your own"),
    h("p", { class: "dim" }, "φ of any observation, seen or not."),
    h("div", { class: "inputs" }, inputs),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, "set as goal"),
      h("button", { type: "button", onclick: fill }, "from the map")));
}

// The state whose eigenfunctions are most like these.
export function nearestFunctions(model, functions) {
  let best = 0, least = Infinity;
  for (let i = 0; i < model.count; i++) {
    const row = rowOf(model.functions, i);
    let sum = 0;
    for (let j = 0; j < row.length; j++) sum += (row[j] - functions[j]) ** 2;
    if (sum < least) [best, least] = [i, sum];
  }
  return best;
}
