// Paint a reward: what it is worth to be anywhere, and the best action there, at once.

const BRUSHES = [["1", "+1"], ["5", "+5"], ["-1", "−1"], ["-5", "−5"], ["0", "erase"]];
const ACTION_COLOURS = ["0072b2", "e69f00", "009e73", "cc79a7", "56b4e9", "d55e00", "f0e442", "555555"];
const APART = 0.5;  // strokes of one drag are so many radii from one another

export function rewardView(app) {
  const { model } = app, { moves, actions } = model.data;
  if (!moves && !actions) {
    const element = h("section", { class: "view" }, h("p", { class: "lead" },
      "A reward can be painted where it is known what each of a few actions does. Here it is not: ", `${model.data.noActions}.`));
    return { element, render: () => {} };
  }
  const dynamics = moves ? movesAsDynamics(model.neighbours, moves) : openedDynamics(actions);
  const ground = moves ? model : landmarksOf(model, actions), exact = moves || actions.enumerated !== null;
  const palette = colourMap(Array.from({ length: 256 }, (_, i) => ACTION_COLOURS[i % ACTION_COLOURS.length]).join(""));
  let strokes = [], rewards = null, values = null, brush = 1, gamma = 0.98, radius = 24, hover = null;
  let start = moves ? null : ground.nearest(...app.state.start.point);
  const painted = new StateMap(ground, "the reward, to paint on", { onpick: paint, onhover: point });
  const worth = new StateMap(ground, "values and the policy", { onpick: begin, onhover: point, ondrag: begin });
  const brushes = h("div", { class: "brushes", role: "radiogroup", "aria-label": "brush" }, BRUSHES.map(([value, words]) => {
    const input = h("input", { type: "radio", name: "brush", value, "aria-label": `brush ${words}` });
    input.checked = value === "1";
    input.addEventListener("change", () => { brush = Number(value); });
    return h("label", {}, input, h("span", {}, words));
  }));
  const size = moves ? null : slider("size of the brush", {
    min: 6, max: 60, value: radius, oninput: (value) => { radius = value; app.refresh(); },
  });
  const discount = slider("discount γ", {
    min: 0.5, max: 0.99, step: 0.01, value: gamma, show: (value) => value.toFixed(2),
    oninput: (value) => { gamma = value; values = null; app.refresh(); },
  });
  const clear = h("button", { type: "button", onclick: () => { strokes = []; rewards = values = null; app.refresh(); } }, "clear");
  const show = choice("show", [["value", "value"], ["action", "best action"]], "value", () => app.refresh());
  const command = h("div"), numbers = h("div"), below = h("div"), under = h("div"), picture = pictureOf(app);
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, leadOf(moves, actions)),
    h("div", { class: "controls" }, brushes, size && size.element, discount.element, show.element, clear),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "reward")), painted.canvas, under),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "value and policy")), worth.canvas, below),
      h("aside", { class: "side" }, numbers, picture.element)),
    command);

  function point(state) {
    hover = state;
    if (moves) app.set({ hover });
    else app.refresh();
  }

  function begin(place) {
    start = place.state;
    if (moves) app.set({ start: place });
    else app.refresh();
  }

  function paint(place, how) {
    hover = place.state;
    const last = strokes[strokes.length - 1], stroke = strokeAt(place.state, place.aimed || place.point);
    const near = how === "move" && last && Math.hypot((last.x - stroke.x) / stroke.rx, (last.y - stroke.y) / stroke.ry) < APART;
    if (moves && rewards && rewards[place.state] === brush) return app.refresh();
    if (near) return app.refresh();
    strokes.push({ ...stroke, value: brush });
    rewards = null;
    return moves ? app.set({ hover }) : app.refresh();
  }

  function strokeAt(state, [x, y]) {
    if (moves) return { state };
    const [wide, high] = painted.scale || [1, 1];
    return { x, y, rx: radius / wide, ry: radius / high };
  }

  function first() {
    if (moves) return [{ state: app.state.goal.state, value: 1 }];
    return [{ ...strokeAt(null, app.state.goal.point), value: 1 }];
  }

  let begun = false;
  function render(state) {
    if (moves) [start, hover] = [state.start.state, state.hover];
    discount.set(gamma);
    if (size) size.set(radius);
    if (!begun) {
      painted.fit();  // for the radius is in pixels
      [strokes, begun] = [first(), true];
    }
    rewards = rewards || paintedRewards(strokes, ground.points);
    const found = solved(dynamics, rewards, gamma, values), colours = app.colours.diverging;
    ({ values } = found);
    const limit = Math.max(1, ...extent(rewards).map(Math.abs)), any = rewards.some((reward) => reward !== 0);
    painted.draw({ values: rewards, range: [-limit, limit], colours, hover });
    under.replaceChildren(legend(colours, [-limit, limit], "on arriving"));
    const path = any && exact ? walk(likeliest(dynamics, found.best), start) : [start], range = extent(values);
    const byAction = show.select.value === "action";
    worth.draw({
      values: byAction ? found.best : values, range: byAction ? [0, 255] : range,
      colours: byAction ? palette : app.colours.reward,
      toward: any ? expectedPoints(dynamics, found.best, ground.points) : null, start: placeOf(ground, start), hover,
      paths: [{ points: path.map((each) => Array.from(rowOf(ground.points, each))), colour: "#0b6e4f" }],
      says: `the value of the start is ${shown(values[start])}, its best action ${dynamics.names[found.best[start]]}`,
    });
    below.replaceChildren(byAction
      ? keyOf(dynamics.names.map((name, a) => [name, palette.css[a], ""])) : legend(app.colours.reward, range, "value"));
    numbers.replaceChildren(facts([
      ["value of the start", shown(values[start], 4)],
      ["best action there", any ? dynamics.names[found.best[start]] : "–"],
      ["mean value", shown(mean(values), 4)],
      exact ? ["path", `${path.length - 1} steps, then it stays or comes round`] : null,
      ...pointedAt(found),
    ]));
    picture.render(seenAt(hover));
    command.replaceChildren(code(solvingWords(model, strokes, rewards, gamma), "what solves this reward"));
  }

  function pointedAt({ values: all, worth: arriving }) {
    if (hover === null) return [];
    return [[nameOf(ground, { state: hover }), shown(all[hover], 4)],
      ...dynamics.names.slice(0, ACTION_COLOURS.length).map((name, a) => {
        const each = worthOf(dynamics, arriving, hover, a);
        return [`… by ${name}`, each === -Infinity ? "never seen" : shown(each, 4)];
      })];
  }

  function seenAt(state) {
    if (moves || state === null) return state;
    return ground.states ? ground.states[state] : model.nearest(...rowOf(ground.points, state));
  }
  return {
    element, render, painted: () => ({ rewards: Array.from(rewards), values: Array.from(values) }),
    pixelOf: (state) => painted.toPixels(...rowOf(ground.points, state)),
  };
}

function leadOf(moves, actions) {
  if (moves) {
    return "Paint what arriving in a cell is worth, by mouse, finger, or arrow keys and Enter. " +
      "The policy is that of lapwing.solve: value iteration over the maze's moves. Click the right map to move the start.";
  }
  return "Paint what arriving somewhere is worth, by mouse, finger, or arrow keys and Enter. The policy is that of lapwing.solve: " +
    (actions.enumerated !== null ? "value iteration over what was counted to follow each action in each state. "
      : "value iteration over the landmarks that are shown, by what each action did near them; arrows go where the best one is expected to lead. ") +
    "Click the right map to move the start.";
}

// The landmarks of lapwing.solve as a model that maps can show.
function landmarksOf(model, actions) {
  const points = unpacked(actions.points), states = unpacked(actions.states);
  return {
    scene: { ...model.scene, discrete: false, toFeatures: null }, data: { pictures: [] },
    points, count: points.rows, nearest: nearestIn(points), continuous: false, phi: null,
    observations: unpacked(actions.observations), states: states && states.data,
    functions: { data: new Float32Array(0), rows: points.rows, columns: 0 },
  };
}
