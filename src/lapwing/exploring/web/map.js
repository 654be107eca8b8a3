// A drawing of numbers over the states, which can be pointed at, clicked and walked over by keys.

const MARGIN = 4;
const WALLS = 0.5;  // so much of the walls around is drawn, in cells

export class StateMap {
  // `label` names it for screen readers; the callbacks get places and states.
  constructor(model, label, { onpick, onhover, ondrag } = {}) {
    this.canvas = h("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": label });
    this.label = label;
    this.on = { onpick, onhover, ondrag };
    this.drawn = null;
    this.use(model);
    this.listen();
  }

  use(model) {
    this.model = model;
    this.bounds = boundsOf(model);
    const shape = this.bounds.square ? this.bounds.width / this.bounds.height : 1.2;
    this.canvas.style.aspectRatio = String(Math.max(0.6, Math.min(1.8, shape)));
  }

  listen() {
    const { canvas } = this;
    let dragging = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = this.fromPixels(event.clientX - box.left, event.clientY - box.top);
      return { ...placeAt(this.model, x, y), aimed: [x, y] };
    };
    canvas.addEventListener("pointerdown", (event) => {
      const at = place(event), start = this.drawn && this.drawn.start;
      const near = start && Math.hypot(...this.apart(start.point, at.point)) < 18;
      dragging = near && this.on.ondrag ? "start" : "goal";
      canvas.setPointerCapture(event.pointerId);
      if (dragging === "goal" && this.on.onpick) this.on.onpick(at, "down");
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = place(event);
      if (dragging === "start") this.on.ondrag(at);
      else if (dragging === "goal" && this.on.onpick) this.on.onpick(at, "move");
      else if (this.on.onhover) this.on.onhover(at.state);
    });
    const end = () => { dragging = null; };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => { if (!dragging && this.on.onhover) this.on.onhover(null); });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // Arrow keys go to the next state in that direction; Enter picks it, S makes it the start.
  key(event) {
    const aside = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const here = (this.drawn && this.drawn.hover) ?? (this.drawn && this.drawn.goal && this.drawn.goal.state) ?? 0;
    if (aside) this.on.onhover && this.on.onhover(beside(this.model, here, aside));
    else if (event.key === "Enter" || event.key === " ") this.on.onpick && this.on.onpick(placeOf(this.model, here), "key");
    else if (event.key === "s" || event.key === "S") this.on.ondrag && this.on.ondrag(placeOf(this.model, here));
    else return;
    event.preventDefault();
  }

  apart(a, b) {
    const [ax, ay] = this.toPixels(...a), [bx, by] = this.toPixels(...b);
    return [ax - bx, ay - by];
  }

  toPixels(x, y) {
    const { left, top } = this.bounds;
    return [this.origin[0] + (x - left) * this.scale[0], this.origin[1] + (y - top) * this.scale[1]];
  }

  fromPixels(x, y) {
    const { left, top } = this.bounds;
    return [left + (x - this.origin[0]) / this.scale[0], top + (y - this.origin[1]) / this.scale[1]];
  }

  fit() {
    const ratio = window.devicePixelRatio || 1, { canvas, bounds } = this;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const margin = this.model.scene.lines ? MARGIN : 3 * MARGIN, inner = [width - 2 * margin, height - 2 * margin];
    let scale = [inner[0] / bounds.width, inner[1] / bounds.height];
    if (bounds.square) scale = scale.map(() => Math.min(...scale));
    this.scale = scale;
    this.origin = [(width - scale[0] * bounds.width) / 2, (height - scale[1] * bounds.height) / 2];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  // values and their colours; then what lies over them: arrows, paths, goal, start, the state pointed at.
  draw(what) {
    this.drawn = what;
    const context = this.fit();
    const shade = what.values ? shades(what.values, what.range) : null;
    drawFloor(context, this);
    drawValues(context, this, shade, what.colours);
    if (what.next || what.toward) drawArrows(context, this, what, shade);
    if (what.traps) drawTraps(context, this, what.traps);
    for (const path of what.paths || []) drawPath(context, this, path);
    if (what.start) drawDot(context, this, what.start.point, "start");
    if (what.goal) drawDot(context, this, what.goal.point, "goal");
    if (what.hover !== null && what.hover !== undefined) drawRing(context, this.toPixels(...rowOf(this.model.points, what.hover)));
    this.canvas.setAttribute("aria-label", what.says ? `${this.label}: ${what.says}` : this.label);
  }
}

function boundsOf(model) {
  const { lines } = model.scene;
  if (lines) {
    const rows = lines.flatMap((line, row) => (/[^#]/.test(line) ? [row] : []));
    const left = Math.min(...rows.map((row) => lines[row].search(/[^#]/))) - WALLS;
    const right = Math.max(...rows.map((row) => lines[row].search(/#*$/))) + WALLS;
    const top = rows[0] - WALLS, bottom = rows[rows.length - 1] + 1 + WALLS;
    return { left, top, width: right - left, height: bottom - top, square: true };
  }
  const [left, right] = extent(columnOf(model.points, 0)), [top, bottom] = extent(columnOf(model.points, 1));
  return { left, top, width: right - left || 1, height: bottom - top || 1, square: model.scene.toScale };
}

function beside(model, here, [right, down]) {
  const [x, y] = rowOf(model.points, here);
  let best = here, least = Infinity;
  for (let i = 0; i < model.count; i++) {
    const [dx, dy] = [model.points.data[2 * i] - x, model.points.data[2 * i + 1] - y];
    const ahead = dx * right + dy * down, aside = Math.abs(dx * down) + Math.abs(dy * right);
    if (ahead > 1e-6 && aside <= ahead && ahead + 2 * aside < least) [best, least] = [i, ahead + 2 * aside];
  }
  return best;
}

const STYLES = new Map();

// A colour of the style sheet. To ask for one costs a new layout, so it is kept until the next drawing.
export function style(name) {
  if (!STYLES.has(name)) STYLES.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return STYLES.get(name);
}

export function forgetStyles() {
  STYLES.clear();
}

function drawFloor(context, map) {
  const { lines } = map.model.scene;
  if (!lines) {
    drawAxes(context, map);
    return;
  }
  const [w, v] = map.scale, { width, height } = map.bounds;
  context.fillStyle = style("--wall");
  context.fillRect(...map.origin, w * width, v * height);
  context.fillStyle = style("--floor");
  lines.forEach((line, row) => {
    for (const { 0: cells, index } of line.matchAll(/[^#]+/g)) {
      const [x, y] = map.toPixels(index, row);
      context.fillRect(x, y, w * cells.length + 0.5, v + 0.5);
    }
  });
}

// What is drawn to the right and upwards, where that is no floor.
function drawAxes(context, map) {
  const [right, up] = map.model.scene.axes || ["", ""], { clientWidth: width, clientHeight: height } = map.canvas;
  context.fillStyle = style("--plot");
  context.fillRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = style("--dim");
  context.fillText(`${up} ↑`, 6, 16);
  context.textAlign = "right";
  context.fillText(`${right} →`, width - 6, height - 7);
  context.textAlign = "left";
}

function drawValues(context, map, shade, colours) {
  if (!shade) return;
  if (map.model.scene.spacing) drawSquares(context, map, shade, colours);
  else drawDots(context, map, shade, colours);
}

// States on a lattice are the pixels of a small picture, which is drawn as large as they are.
function drawSquares(context, map, shade, colours) {
  const { model } = map, { spacing } = model.scene, { data } = model.points;
  map.lattice = map.lattice && map.lattice.model === model ? map.lattice : latticeOf(model);
  const { left, top, columns, rows, canvas } = map.lattice, small = canvas.getContext("2d");
  const picture = small.createImageData(columns, rows);
  for (let i = 0; i < shade.length; i++) {
    if (shade[i] < 0) continue;
    const at = 4 * (Math.round((data[2 * i + 1] - top) / spacing) * columns + Math.round((data[2 * i] - left) / spacing));
    for (let c = 0; c < 3; c++) picture.data[at + c] = colours.bytes[3 * shade[i] + c];
    picture.data[at + 3] = 255;
  }
  small.putImageData(picture, 0, 0);
  context.imageSmoothingEnabled = false;
  const [x, y] = map.toPixels(left - spacing / 2, top - spacing / 2);
  context.drawImage(canvas, x, y, columns * spacing * map.scale[0], rows * spacing * map.scale[1]);
}

function latticeOf(model) {
  const [left, right] = extent(columnOf(model.points, 0)), [top, bottom] = extent(columnOf(model.points, 1));
  const columns = Math.round((right - left) / model.scene.spacing) + 1, rows = Math.round((bottom - top) / model.scene.spacing) + 1;
  return { model, left, top, columns, rows, canvas: h("canvas", { width: columns, height: rows }) };
}

function drawDots(context, map, shade, colours) {
  const { model } = map, size = dotSize(map);
  let last = -2;
  for (let i = 0; i < shade.length; i++) {
    if (shade[i] < 0) continue;
    if (shade[i] !== last) context.fillStyle = colours.css[last = shade[i]];
    const [x, y] = map.toPixels(model.points.data[2 * i], model.points.data[2 * i + 1]);
    context.fillRect(x - size / 2, y - size / 2, size, size);
  }
}

function dotSize(map) {
  const area = map.canvas.clientWidth * map.canvas.clientHeight * (map.model.scene.lines ? 0.5 : 0.2);
  return Math.max(2.5, Math.min(9, 1.15 * Math.sqrt(area / map.model.count)));
}

// One arrow for each square of 15 pixels or so: to the state that is next, or towards a point. Over squares it is
// dark on bright ones and bright on dark ones; dots are smaller than it, so there it has a rim.
function drawArrows(context, map, { next, toward, colours }, shade) {
  const { model } = map, { data } = model.points, taken = new Set(), dots = !model.scene.spacing;
  const cell = Math.max(15, (model.scene.discrete ? Math.min(...map.scale) : 17)), half = cell * 0.3;
  const onBright = new Path2D(), onDark = new Path2D();
  for (let i = 0; i < model.count; i++) {
    const aim = next ? next[i] : i, to = next ? data : toward;
    if (to[2 * aim] === data[2 * i] && to[2 * aim + 1] === data[2 * i + 1]) continue;
    const [x, y] = map.toPixels(data[2 * i], data[2 * i + 1]);
    const square = Math.floor(x / cell) * 4096 + Math.floor(y / cell);
    if (taken.has(square)) continue;
    taken.add(square);
    const [tx, ty] = map.toPixels(to[2 * aim], to[2 * aim + 1]), length = Math.hypot(tx - x, ty - y) || 1;
    const dx = (tx - x) / length * half, dy = (ty - y) / length * half;
    const path = colours.bright[shade[i]] ? onBright : onDark;
    path.moveTo(x - dx, y - dy);
    path.lineTo(x + dx, y + dy);
    path.moveTo(x + 0.2 * dx - 0.5 * dy, y + 0.2 * dy + 0.5 * dx);
    path.lineTo(x + dx, y + dy);
    path.lineTo(x + 0.2 * dx + 0.5 * dy, y + 0.2 * dy - 0.5 * dx);
  }
  if (dots) {
    onBright.addPath(onDark);
    stroked(context, onBright, 3.2, style("--plot"));
    stroked(context, onBright, 1.3, style("--ink"));
  } else {
    stroked(context, onBright, 1.2, "rgba(0,0,0,.62)");
    stroked(context, onDark, 1.2, "rgba(255,255,255,.8)");
  }
}

function stroked(context, path, width, colour) {
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke(path);
}

// A ring where no neighbour is nearer to the goal.
function drawTraps(context, map, traps) {
  context.lineWidth = 2;
  context.strokeStyle = style("--trap");
  for (const i of traps) {
    context.beginPath();
    context.arc(...map.toPixels(...rowOf(map.model.points, i)), 4.5, 0, 2 * Math.PI);
    context.stroke();
  }
}

function drawPath(context, map, { points, colour, dashed }) {
  for (const [width, stroke] of [[5, "rgba(255,255,255,.85)"], [2.6, colour]]) {
    context.beginPath();
    points.forEach(([x, y], i) => context[i ? "lineTo" : "moveTo"](...map.toPixels(x, y)));
    context.lineWidth = width;
    context.lineJoin = "round";
    context.setLineDash(dashed && width < 5 ? [6, 4] : []);
    context.strokeStyle = stroke;
    context.stroke();
  }
  context.setLineDash([]);
}

function drawDot(context, map, point, what) {
  const [x, y] = map.toPixels(...point), size = 8;
  context.beginPath();
  if (what === "goal") {
    for (let i = 0; i < 10; i++) {
      const angle = -Math.PI / 2 + i * Math.PI / 5, r = i % 2 ? size * 0.5 : size * 1.25;
      context[i ? "lineTo" : "moveTo"](x + r * Math.cos(angle), y + r * Math.sin(angle));
    }
    context.closePath();
  } else {
    context.arc(x, y, size * 0.85, 0, 2 * Math.PI);
  }
  context.fillStyle = what === "goal" ? style("--goal") : style("--start");
  context.fill();
  context.lineWidth = 1.8;
  context.strokeStyle = "#fff";
  context.stroke();
}

export function drawRing(context, [x, y]) {
  for (const [width, colour] of [[4, "#fff"], [2, "#111"]]) {
    context.beginPath();
    context.arc(x, y, 7, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }
}

// The colours of a map with the numbers at their ends.
export function legend(colours, [low, high], label) {
  const stops = [0, 32, 64, 96, 128, 160, 192, 224, 255].map((i) => colours.css[i]).join(",");
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(90deg, ${stops})`;
  return h("div", { class: "legend" }, h("span", {}, shown(low)), bar, h("span", {}, shown(high)),
    label ? h("span", { class: "dim" }, label) : null);
}
