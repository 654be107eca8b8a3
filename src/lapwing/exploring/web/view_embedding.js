// The states in the space of three eigenfunctions, to be turned about; and the map, linked to it.

const MOST_EDGES = 12000;

export function embeddingView(app) {
  const { model } = app;
  const canvas = h("canvas", { class: "map cube", tabindex: "0", role: "img", "aria-label": "the embedding in three dimensions" });
  const onhover = (hover) => app.set({ hover });
  const onpick = (place) => app.set({ hover: place.state });
  const map = new StateMap(model, "the map, linked to the embedding", { onhover, onpick });
  const view = { turn: 0.6, tilt: 0.45, zoom: 1 };
  const names = Object.keys(model.filters).filter((name) => name !== "soft" && name !== "hitting");
  const weighted = names.length > 0;
  const filter = weighted ? choice("scaled by", names.map((name) => [name, name]),
    names.includes("commute") ? "commute" : names[0], () => app.refresh()) : null;
  const axes = [0, 1, 2].map((axis) => choice(["to the right", "upwards", "in depth"][axis],
    Array.from({ length: model.dim - model.first }, (_, i) => [String(i + model.first), `f${subscript(i + model.first + 1)}`]),
    String(Math.min(axis + model.first, model.dim - 1)), () => app.refresh()));
  const colour = choice("colour", [["function", "eigenfunction k"], ["distance", "distance to the goal"]], "function",
    () => app.refresh());
  const numbers = h("div"), picture = pictureOf(app), edges = edgesOf(model);
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Every state at its eigenfunctions' values: near here means few steps apart. " +
      "Drag to turn, scroll or pinch to zoom; point at a state and see it on the map."),
    h("div", { class: "controls" }, axes.map((axis) => axis.element), filter && filter.element, colour.element),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "embedding")), canvas),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "map")), map.canvas, numbers),
      picture.element ? h("aside", { class: "side" }, picture.element) : null));
  let placed = new Float64Array(0);
  listenToTurns(canvas, view, () => app.refresh(), (x, y) => onhover(nearestPlaced(placed, x, y)));

  function coordinates(chosen) {
    const weights = filter ? model.filters[filter.select.value] : null, found = new Float64Array(3 * model.count);
    const ends = chosen.map((column, axis) => {
      const scale = weights && column > 0 ? weights[column - 1] : 1;
      for (let i = 0; i < model.count; i++) found[3 * i + axis] = scale * model.functions.data[i * model.dim + column];
      return extent(found.filter((_, i) => i % 3 === axis));
    });
    for (let i = 0; i < found.length; i++) found[i] -= (ends[i % 3][0] + ends[i % 3][1]) / 2;
    let most = 0;
    for (let i = 0; i < found.length; i += 3) most = Math.max(most, Math.hypot(found[i], found[i + 1], found[i + 2]));
    return found.map((value) => value / (most || 1));
  }

  function render(state) {
    const { k, hover, goal } = state;
    const byDistance = colour.select.value === "distance";
    const values = byDistance ? distancesTo(model, goal, state.filter, state.dims) : columnOf(model.functions, k);
    const range = byDistance ? extent(values) : symmetric(values);
    const colours = byDistance ? app.colours.distance : app.colours.diverging;
    placed = drawCube(canvas, coordinates(axes.map((axis) => Number(axis.select.value))), view,
      { shade: shades(values, range), colours, hover, edges, labels: axes.map((axis) => axis.select.selectedOptions[0].textContent) });
    map.draw({ values, range, colours, hover, goal: byDistance ? goal : null });
    numbers.replaceChildren(facts([
      ["colour", byDistance ? "distance to the goal" : `f${subscript(k + 1)}`],
      hover === null ? ["state", "point at one"] : [nameOf(model, { state: hover }), shown(values[hover])],
    ]));
    picture.render(hover);
  }
  return { element, render };
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

// Draws, and returns where each state is in pixels.
function drawCube(canvas, xyz, view, { shade, colours, hover, edges, labels }) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const [ct, st, cp, sp] = [Math.cos(view.turn), Math.sin(view.turn), Math.cos(view.tilt), Math.sin(view.tilt)];
  const size = 0.47 * Math.min(width, height) * view.zoom;
  const seen = (x, y, z) => {
    const along = ct * x + st * z, deep = -st * x + ct * z;
    return [width / 2 + size * along, height / 2 - size * (cp * y - sp * deep), sp * y + cp * deep];
  };
  const count = xyz.length / 3, placed = new Float64Array(2 * count), depth = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    [placed[2 * i], placed[2 * i + 1], depth[i]] = seen(xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]);
  }
  context.font = "12px system-ui, sans-serif";
  context.strokeStyle = context.fillStyle = style("--dim");
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((axis, index) => {
    const [x0, y0] = seen(...axis.map((each) => -each)), [x1, y1] = seen(...axis);
    context.globalAlpha = 0.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    context.globalAlpha = 1;
    context.fillText(labels[index], x1 + 4, y1 - 4);
  });
  context.globalAlpha = 0.35;
  context.beginPath();
  for (let e = 0; e < edges.length; e += 2) {
    context.moveTo(placed[2 * edges[e]], placed[2 * edges[e] + 1]);
    context.lineTo(placed[2 * edges[e + 1]], placed[2 * edges[e + 1] + 1]);
  }
  context.stroke();
  context.globalAlpha = 1;
  const order = Array.from(depth.keys()).sort((a, b) => depth[b] - depth[a]);
  const dot = Math.max(2.5, Math.min(9, 90 / Math.sqrt(count)));
  for (const i of order) {
    const side = dot * (1 - 0.25 * depth[i]);
    context.fillStyle = "rgba(20,30,30,.45)";
    context.fillRect(placed[2 * i] - side / 2 - 0.7, placed[2 * i + 1] - side / 2 - 0.7, side + 1.4, side + 1.4);
    context.fillStyle = colours.css[Math.max(0, shade[i])];
    context.fillRect(placed[2 * i] - side / 2, placed[2 * i + 1] - side / 2, side, side);
  }
  if (hover !== null && hover < count) {
    context.lineWidth = 2.5;
    context.strokeStyle = style("--ink");
    context.beginPath();
    context.arc(placed[2 * hover], placed[2 * hover + 1], 8, 0, 2 * Math.PI);
    context.stroke();
    context.lineWidth = 1;
  }
  return placed;
}

function nearestPlaced(placed, x, y) {
  let best = null, least = 20 ** 2;
  for (let i = 0; i < placed.length / 2; i++) {
    const apart = (placed[2 * i] - x) ** 2 + (placed[2 * i + 1] - y) ** 2;
    if (apart < least) [best, least] = [i, apart];
  }
  return best;
}

function listenToTurns(canvas, view, changed, pointed) {
  const fingers = new Map();
  const zoom = (factor) => { view.zoom = Math.max(0.4, Math.min(6, view.zoom * factor)); changed(); };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) {
      const box = canvas.getBoundingClientRect();
      pointed(event.clientX - box.left, event.clientY - box.top);
      return;
    }
    const before = fingers.size === 2 ? spread() : null;
    const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
    [finger.x, finger.y] = [event.clientX, event.clientY];
    if (before) {
      zoom(spread() / before);
      return;
    }
    view.turn += dx * 0.01;
    view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + dy * 0.01));
    changed();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  }
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
    if (by) [view.turn, view.tilt] = [view.turn + by[0], Math.max(-1.5, Math.min(1.5, view.tilt + by[1]))];
    else if (event.key === "+" || event.key === "=") view.zoom *= 1.1;
    else if (event.key === "-") view.zoom /= 1.1;
    else return;
    event.preventDefault();
    changed();
  });
}
