// Draw a maze: its exact eigenfunctions and distances, computed here.

const COUNT = 12, LARGEST = 21;
const EXAMPLES = {
  empty: (n) => Array.from({ length: n }, () => ".".repeat(n)),
  rooms: (n) => Array.from({ length: n }, (_, row) => Array.from({ length: n }, (_, column) => {
    const middle = Math.floor(n / 2), door = Math.floor(n / 4);
    const wall = row === middle || column === middle;
    const open = (row === middle && (column === door || column === n - 1 - door)) ||
      (column === middle && (row === door || row === n - 1 - door));
    return wall && !open ? "#" : ".";
  }).join("")),
  spiral: (n) => {
    const rows = Array.from({ length: n }, () => Array(n).fill("."));
    for (let ring = 1; ring < n / 2 - 1; ring += 2) {
      for (let i = ring; i < n - ring; i++) {
        rows[ring][i] = rows[n - 1 - ring][i] = rows[i][n - 1 - ring] = "#";
        if (i > ring + 1) rows[i][ring] = "#";
      }
      rows[ring + 1][ring - 1] = "#";
    }
    return rows.map((row) => row.join(""));
  },
};

export function drawView(app) {
  let lines = EXAMPLES.rooms(15), found = null, spectral = null, sent = 0, goal = null, k = 1;
  const worker = new Worker(URL.createObjectURL(new Blob([document.getElementById("worker").textContent])));
  const editor = h("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": "a grid to draw walls on" });
  const cursor = { row: 0, column: 0, visible: false };
  const status = h("p", { class: "dim", role: "status" });
  const functionsMap = new StateMap(gridModel({ cells: [[0, 0]], moves: [0, 0, 0, 0], eigenvalues: [0], functions: [1] }, ["."]),
    "an exact eigenfunction of the drawn maze", { onhover: (state) => point(state) });
  const distanceMap = new StateMap(functionsMap.model, "distance to a goal in the drawn maze", {
    onhover: (state) => point(state), onpick: (place) => { goal = place.state; app.refresh(); },
  });
  const size = slider("cells", { min: 5, max: LARGEST, value: 15, oninput: (n) => redraw(EXAMPLES.empty(n)) });
  const number = slider("eigenfunction", { min: 1, max: COUNT, value: 2, oninput: (value) => { k = value - 1; app.refresh(); } });
  const examples = [["empty", "empty"], ["rooms", "four rooms"], ["spiral", "spiral"]].map(([name, words]) =>
    h("button", { type: "button", onclick: () => redraw(EXAMPLES[name](lines.length)) }, words));
  const own = app.model.scene.discrete && app.model.scene.lines.length <= LARGEST && app.model.scene.lines[0].length <= LARGEST
    ? h("button", { type: "button", onclick: () => redraw(app.model.scene.lines.map((line) => line.replace("G", "."))) }, app.model.data.title)
    : null;
  const copy = h("button", { type: "button", class: "strong" }, "copy as maze file");
  copy.addEventListener("click", () => copied(`${bordered(lines).join("\n")}\n`, copy));
  const numbers = h("div"), below = h("div"), under = h("div");
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Draw walls by mouse or finger (or arrow keys and the space bar), and see the maze's exact " +
      "eigenfunctions and distances at once. Save the copied text as my_maze.txt, then: lapwing learn my_maze.txt"),
    h("div", { class: "controls" }, size.element, examples, own, copy),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, h("h2", {}, "draw here")), editor, status),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "exact eigenfunction"), number.element), functionsMap.canvas, under),
      h("figure", {}, h("figcaption", {}, h("h2", {}, "distance to a goal")), distanceMap.canvas, below)),
    numbers);

  let hover = null;
  const point = (state) => { hover = state; app.refresh(); };
  worker.onmessage = ({ data }) => {
    if (data.id !== sent) return;
    found = data;
    spectral = gridModel(found, lines);
    functionsMap.use(spectral);
    distanceMap.use(spectral);
    if (goal === null || goal >= spectral.count) goal = spectral.count - 1;
    hover = null;
    performance.measure("lapwing:drawn", { start: performance.now() - found.milliseconds, end: performance.now() });
    app.refresh();
  };
  worker.onerror = (event) => { status.textContent = `It could not be computed: ${event.message}`; };

  function redraw(next) {
    if (!next.some((line) => line.includes("."))) return;
    lines = next;
    size.set(Math.max(lines.length, lines[0].length));
    sent += 1;
    worker.postMessage({ id: sent, lines, count: COUNT });
    app.refresh();
  }

  function put(row, column, mark) {
    if (lines[row]?.[column] === undefined || lines[row][column] === mark) return;
    redraw(lines.map((line, at) => (at === row ? line.slice(0, column) + mark + line.slice(column + 1) : line)));
  }
  listenToDrawing(editor, () => lines, put, cursor, () => app.refresh());

  function render() {
    drawGrid(editor, lines, cursor);
    if (!spectral) {
      if (!sent) redraw(lines);
      return;
    }
    const shown_ = Math.min(k, spectral.dim - 1);
    number.set(shown_ + 1);
    const values = columnOf(spectral.functions, shown_), range = symmetric(values), colours = app.colours.diverging;
    functionsMap.draw({ values, range, colours, hover, says: `eigenvalue ${shown(found.eigenvalues[shown_], 6)}` });
    under.replaceChildren(legend(colours, range, `λ = ${shown(found.eigenvalues[shown_], 6)}`));
    const place = placeOf(spectral, goal), away = distancesTo(spectral, place, "biharmonic", spectral.dim);
    const steps = stepsTo(spectral.neighbours, goal), next = greedy(spectral.neighbours, away);
    distanceMap.draw({ values: away, range: extent(away), colours: app.colours.distance, next, goal: place, hover });
    below.replaceChildren(legend(app.colours.distance, extent(away), "biharmonic"));
    status.textContent = `${spectral.count} cells` + (found.dropped ? `, ${found.dropped} more cannot be reached` : "") +
      `; the first ${spectral.dim} eigenfunctions took ${Math.round(found.milliseconds)} ms.`;
    numbers.replaceChildren(facts([
      ["eigenvalues", Array.from(found.eigenvalues, (value) => shown(value)).join("  ")],
      ["rank correlation of the distance with steps", shown(rankCorrelation(away, steps))],
    ]));
  }
  return { element, render, spectrum: () => ({ ...found, pending: found?.id !== sent }) };
}

// The drawn maze as a model that maps can show.
function gridModel(found, lines) {
  const count = found.cells.length, dim = found.eigenvalues.length;
  const points = { data: Float32Array.from(found.cells.flatMap(([row, column]) => [column + 0.5, row + 0.5])), rows: count, columns: 2 };
  const second = Math.max(found.eigenvalues[1] ?? 1, 1e-12);
  return {
    scene: { lines, discrete: true, spacing: 1, goal: null, toFeatures: null },
    data: { pictures: [] }, count, dim, points, nearest: nearestIn(points), continuous: false,
    functions: { data: found.functions, rows: count, columns: dim },
    neighbours: { data: found.moves, rows: count, columns: 4 },
    filters: { biharmonic: Array.from(found.eigenvalues.slice(1), (value) => second / Math.max(value, 1e-12)) },
    phi: null, observations: null,
  };
}

// A wall around it, as the paper's mazes have.
function bordered(lines) {
  const full = "#".repeat(lines[0].length + 2);
  return [full, ...lines.map((line) => `#${line}#`), full];
}

function drawGrid(canvas, lines, cursor) {
  canvas.style.aspectRatio = `${lines[0].length} / ${lines.length}`;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d"), w = width / lines[0].length, v = height / lines.length;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  lines.forEach((line, row) => {
    for (let column = 0; column < line.length; column++) {
      context.fillStyle = style(line[column] === "#" ? "--wall" : "--floor");
      context.fillRect(column * w + 0.5, row * v + 0.5, w - 1, v - 1);
    }
  });
  if (cursor.visible) {
    context.lineWidth = 3;
    context.strokeStyle = style("--accent");
    context.strokeRect(cursor.column * w + 2, cursor.row * v + 2, w - 4, v - 4);
  }
}

function listenToDrawing(canvas, current, put, cursor, changed) {
  let mark = null;
  const cellOf = (event) => {
    const box = canvas.getBoundingClientRect(), lines = current();
    return [Math.floor((event.clientY - box.top) / box.height * lines.length),
      Math.floor((event.clientX - box.left) / box.width * lines[0].length)];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [row, column] = cellOf(event);
    canvas.setPointerCapture(event.pointerId);
    mark = current()[row]?.[column] === "#" ? "." : "#";
    put(row, column, mark);
  });
  canvas.addEventListener("pointermove", (event) => { if (mark) put(...cellOf(event), mark); });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { mark = null; });
  canvas.addEventListener("blur", () => { cursor.visible = false; changed(); });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key], lines = current();
    cursor.row = Math.min(cursor.row, lines.length - 1);
    cursor.column = Math.min(cursor.column, lines[0].length - 1);
    if (by) {
      cursor.row = Math.max(0, Math.min(lines.length - 1, cursor.row + by[0]));
      cursor.column = Math.max(0, Math.min(lines[0].length - 1, cursor.column + by[1]));
    } else if (event.key === " " || event.key === "Enter") {
      put(cursor.row, cursor.column, lines[cursor.row][cursor.column] === "#" ? "." : "#");
    } else {
      return;
    }
    cursor.visible = true;
    event.preventDefault();
    changed();
  });
}
