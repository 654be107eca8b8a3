// The states in the space of three eigenfunctions, to be turned about; and the map, linked to it.

const MOST_EDGES = 12000;

export function embeddingView(app) {
  const { model } = app;
  const cube = new Cube("the embedding in three dimensions", edgesOf(model));
  const onhover = (hover) => app.set({ hover });
  const onpick = (place) => app.set({ hover: place.state });
  const map = new StateMap(model, "the map, linked to the embedding", { onhover, onpick });
  const names = Object.keys(model.filters).filter((name) => name !== "soft" && name !== "hitting");
  const weighted = names.length > 0;
  const filter = weighted ? choice("scaled by", names.map((name) => [name, name]),
    names.includes("commute") ? "commute" : names[0], () => app.refresh()) : null;
  const axes = [0, 1, 2].map((axis) => choice(["to the right", "upwards", "in depth"][axis],
    Array.from({ length: model.dim - model.first }, (_, i) => [String(i + model.first), `f${subscript(i + model.first + 1)}`]),
    String(Math.min(axis + model.first, model.dim - 1)), () => app.refresh()));
  const colour = choice("colour", [["function", "eigenfunction k"], ["distance", "distance to the goal"]], "function",
    () => app.refresh());
  const numbers = h("div"), picture = pictureOf(app);
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Every state at its eigenfunctions' values: near here means few steps apart. " +
      "Drag to turn, scroll or pinch to zoom; point at a state and see it on the map."),
    h("div", { class: "controls" }, axes.map((axis) => axis.element), filter && filter.element, colour.element),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "embedding")), cube.element),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "map")), map.canvas, numbers),
      picture.element ? h("aside", { class: "side" }, picture.element) : null));
  cube.listen(() => app.refresh(), onhover);
  let placed = { key: null, xyz: null };

  // Made anew only when another choice asks for it: while the cube is turned they stay.
  function coordinates() {
    const chosen = axes.map((axis) => Number(axis.select.value)), named = filter ? filter.select.value : null;
    const key = JSON.stringify([chosen, named]);
    if (placed.key !== key) placed = { key, xyz: inUnitBall(model, chosen, named && model.filters[named]) };
    return placed.xyz;
  }

  function render(state) {
    const { k, hover, goal } = state;
    const byDistance = colour.select.value === "distance";
    const values = byDistance ? distancesTo(model, goal, state.filter, state.dims) : columnOf(model.functions, k);
    const range = byDistance ? extent(values) : symmetric(values);
    const colours = byDistance ? app.colours.distance : app.colours.diverging;
    cube.draw(coordinates(), {
      shade: shades(values, range), colours, hover, labels: axes.map((axis) => axis.select.selectedOptions[0].textContent),
    });
    map.draw({ values, range, colours, hover, goal: byDistance ? goal : null });
    numbers.replaceChildren(facts([
      ["colour", byDistance ? "distance to the goal" : `f${subscript(k + 1)}`],
      hover === null ? ["state", "point at one"] : [nameOf(model, { state: hover }), shown(values[hover])],
    ]));
    picture.render(hover);
  }
  const pixelOf = (state) => cube.seen()(...coordinates().subarray(3 * state, 3 * state + 3));
  return { element, render, cube, pixelOf };
}

function edgesOf(model) {
  if (!model.neighbours || model.count * model.neighbours.columns > 2 * MOST_EDGES) return [];
  const found = [], most = model.neighbours.columns;
  for (let i = 0; i < model.count; i++) {
    for (let a = 0; a < most; a++) {
      const there = model.neighbours.data[i * most + a];
      if (there > i) found.push(i, there);
    }
  }
  return found;
}

// The columns side by side, each times its weight, moved and scaled into the ball of radius 1.
function inUnitBall(model, chosen, weights) {
  const found = new Float32Array(3 * model.count);
  chosen.forEach((column, axis) => {
    const values = columnOf(model.functions, column), [low, high] = extent(values);
    const scale = weights && column > 0 ? weights[column - 1] : 1;
    for (let i = 0; i < model.count; i++) found[3 * i + axis] = scale * (values[i] - (low + high) / 2);
  });
  let most = 0;
  for (let i = 0; i < found.length; i += 3) most = Math.max(most, Math.hypot(found[i], found[i + 1], found[i + 2]));
  return found.map((value) => value / (most || 1));
}

// Points by WebGL, or by the canvas over them where there is none; labels and the ring are always on that one.
class Cube {
  constructor(label, edges) {
    this.below = h("canvas", { class: "points", "aria-hidden": "true" });
    this.canvas = h("canvas", { class: "map cube", tabindex: "0", role: "img", "aria-label": label });
    this.context = this.canvas.getContext("2d");
    this.element = h("div", { class: "stack" }, this.below, this.canvas);
    this.view = { turn: 0.6, tilt: 0.45, zoom: 1 };
    this.xyz = new Float32Array(0);
    this.plain = canvasPainter(this.context, edges);
    this.painter = webglPainter(this.below, edges) || this.plain;
  }

  listen(changed, onhover) {
    listenToTurns(this.canvas, this.view, changed, (x, y) => onhover(nearestSeen(this.xyz, this.seen(), x, y)));
    this.below.addEventListener("webglcontextlost", changed);
  }

  seen() {
    return projection(this.view, this.canvas.clientWidth, this.canvas.clientHeight);
  }

  draw(xyz, { shade, colours, hover, labels }) {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    for (const canvas of [this.below, this.canvas]) {
      if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
      if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    }
    if (this.painter.lost()) this.painter = this.plain;
    this.below.hidden = this.painter === this.plain;
    this.element.dataset.by = this.below.hidden ? "canvas" : "webgl";
    this.xyz = xyz;
    const { context } = this, seen = this.seen(), dot = Math.max(3, Math.min(9, 110 / Math.sqrt(shade.length)));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.painter.draw(xyz, shade, colours, this.view, { width, height, ratio, dot });
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = style("--dim");
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((axis, index) => {
      const [x, y] = seen(...axis);
      context.fillText(labels[index], Math.min(x + 4, width - 18), Math.max(y - 4, 12));
    });
    if (hover !== null && hover < shade.length) drawRing(context, seen(...xyz.subarray(3 * hover, 3 * hover + 3)));
  }
}
