// Lines and points with axes, as SVG.

const WIDE = 640, HIGH = 300, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 42;

function ticks(low, high, count) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) found.push(at);
  return found;
}

// Far from 0 by powers of ten, near it in proportion: losses cross zero.
function symlog(value, linear) {
  return Math.sign(value) * Math.log10(1 + Math.abs(value) / linear);
}

// series: {name, x, y, mark: "line" | "dot" | "ring" | "bar", colour, spread}. Returns an svg element.
export function chart({ label, series, xLabel, yLabel, logarithmic = false, onpick, chosen }) {
  const bend = logarithmic ? (value) => symlog(value, 0.01) : (value) => value;
  const [x0, x1] = extent(series.flatMap((each) => each.x));
  let [y0, y1] = extent(series.flatMap((each) => each.y.map(bend)));
  if (!logarithmic) y0 = Math.min(0, y0);
  const padX = (x1 - x0) * 0.02 || 0.5, padY = (y1 - y0) * 0.06 || 0.5;
  y1 += padY;
  if (logarithmic) y0 -= padY;
  const toX = (x) => LEFT + (x - x0 + padX) / (x1 - x0 + 2 * padX) * (WIDE - LEFT - RIGHT);
  const toY = (y) => HIGH - BOTTOM - (bend(y) - y0) / (y1 - y0) * (HIGH - TOP - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart", role: "img", "aria-label": label });
  const texts = (x, y, words, more = {}) => {
    const element = svg("text", { x, y, ...more });
    element.textContent = words;
    root.append(element);
  };
  const levels = logarithmic
    ? [-100, -10, -1, -0.1, 0, 0.1, 1, 10, 100, 1000].filter((y) => bend(y) >= y0 && bend(y) <= y1)
    : ticks(y0, y1, 5);
  for (const y of levels) {
    root.append(svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: toY(y), y2: toY(y), class: "grid" }));
    texts(LEFT - 8, toY(y) + 4, shown(y), { "text-anchor": "end" });
  }
  for (const x of ticks(x0, x1, 8)) {
    if (x1 - x0 > 8 || Number.isInteger(x)) texts(toX(x), HIGH - BOTTOM + 18, shown(x, 6), { "text-anchor": "middle" });
  }
  texts((LEFT + WIDE - RIGHT) / 2, HIGH - 6, xLabel, { "text-anchor": "middle", class: "axis" });
  texts(14, (TOP + HIGH - BOTTOM) / 2, yLabel,
    { "text-anchor": "middle", class: "axis", transform: `rotate(-90 14 ${(TOP + HIGH - BOTTOM) / 2})` });
  if (chosen !== undefined && chosen !== null) {
    root.append(svg("line", { x1: toX(chosen), x2: toX(chosen), y1: TOP, y2: HIGH - BOTTOM, class: "chosen" }));
  }
  for (const { x, y, mark, colour, spread } of series) {
    if (mark === "line") {
      const path = x.map((at, i) => `${i ? "L" : "M"}${toX(at).toFixed(1)} ${toY(y[i]).toFixed(1)}`).join("");
      root.append(svg("path", { d: path, fill: "none", stroke: colour, "stroke-width": 2 }));
      continue;
    }
    x.forEach((at, i) => {
      if (!Number.isFinite(y[i])) return;
      if (spread && spread[i]) {
        const ends = { y1: toY(Math.max(y[i] - spread[i], logarithmic ? -Infinity : 0)), y2: toY(y[i] + spread[i]) };
        root.append(svg("line", { x1: toX(at), x2: toX(at), ...ends, stroke: colour, "stroke-width": 1.4 }));
      }
      const filled = mark === "dot";
      root.append(svg("circle", {
        cx: toX(at), cy: toY(y[i]), r: filled ? 3.6 : 6.5, fill: filled ? colour : "none", stroke: colour,
        "stroke-width": filled ? 0 : 1.8,
      }));
    });
  }
  if (onpick) {
    root.addEventListener("click", (event) => {
      const box = root.getBoundingClientRect(), scale = Math.min(box.width / WIDE, box.height / HIGH);
      const at = (event.clientX - box.left - (box.width - WIDE * scale) / 2) / scale;
      onpick(Math.round((at - LEFT) / (WIDE - LEFT - RIGHT) * (x1 - x0 + 2 * padX) + x0 - padX));
    });
  }
  return root;
}

export function keyOf(entries) {
  return h("ul", { class: "key" }, entries.filter(Boolean).map(([words, colour, mark]) => {
    const sample = h("span", { class: `sample ${mark}`, "aria-hidden": "true" });
    sample.style.setProperty("--colour", colour);
    return h("li", {}, sample, words);
  }));
}
