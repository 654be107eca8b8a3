// The page: a state that every view reads, and tabs between the views.

const VIEWS = [
  ["eigenfunctions", "Eigenfunctions", functionsView],
  ["spectrum", "Spectrum", spectrumView],
  ["distances", "Distances", distancesView],
  ["reward", "Reward", rewardView],
  ["embedding", "Embedding", embeddingView],
  ["run", "Run", runView],
  ["draw", "Draw a maze", drawView],
];

class App {
  constructor(model, colours) {
    this.model = model;
    this.colours = colours;
    this.state = firstState(model);
    this.views = {};
    this.current = null;
    this.due = false;
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.refresh();
  }

  refresh() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.render();
    });
  }

  render() {
    const began = performance.now();
    forgetStyles();
    this.views[this.current].render(this.state);
    performance.measure(`lapwing:${this.current}`, { start: began, end: performance.now() });
  }

  open(name) {
    if (!this.views[name]) {
      this.views[name] = VIEWS.find(([id]) => id === name)[2](this);
      document.getElementById(`panel-${name}`).append(this.views[name].element);
    }
    this.current = name;
    for (const [id] of VIEWS) {
      document.getElementById(`panel-${id}`).hidden = id !== name;
      const tab = document.getElementById(`tab-${id}`);
      tab.setAttribute("aria-selected", String(id === name));
      tab.tabIndex = id === name ? 0 : -1;
      if (id === name) broughtIntoView(tab);
    }
    this.render();
  }
}

function firstState(model) {
  const slowest = columnOf(model.functions, model.first);
  let low = 0, high = 0;
  slowest.forEach((value, i) => {
    if (value < slowest[low]) low = i;
    if (value > slowest[high]) high = i;
  });
  const goal = placeOf(model, model.scene.goal ?? high), filter = model.data.defaultFilter;
  const known = filter in model.filters ? filter : Object.keys(model.filters)[0];
  const state = { k: model.first, hover: null, goal, filter: known, dims: model.dim, show: "distance" };
  const far = distancesTo(model, goal, known, model.dim);
  let start = low;
  if (model.scene.goal !== null) far.forEach((value, i) => { if (value > far[start]) start = i; });
  return { ...state, start: placeOf(model, start) };
}

function tabs(app) {
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "views" });
  VIEWS.forEach(([id, words], index) => {
    const tab = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` }, words);
    tab.addEventListener("click", () => go(app, id));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const [next] = VIEWS[(index + by + VIEWS.length) % VIEWS.length];
      go(app, next);
      document.getElementById(`tab-${next}`).focus();
    });
    list.append(tab);
  });
  return list;
}

// Sideways only, on a phone: the page itself stays where it is.
function broughtIntoView(tab) {
  const list = tab.parentElement, left = tab.offsetLeft - list.offsetLeft, right = left + tab.offsetWidth;
  if (left < list.scrollLeft) list.scrollLeft = left;
  if (right > list.scrollLeft + list.clientWidth) list.scrollLeft = right - list.clientWidth;
}

function go(app, id) {
  history.replaceState(null, "", `#${id}`);
  app.open(id);
}

function themeButton() {
  const dark = () => (document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = h("button", { type: "button", class: "theme", "aria-label": "light or dark" }, "◐");
  return { button, toggle: () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; } };
}

function begin() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = JSON.parse(document.getElementById("colours").textContent);
  for (const name of Object.keys(colours)) colours[name] = colourMap(colours[name]);
  const model = modelOf(data), app = new App(model, colours), theme = themeButton();
  theme.button.addEventListener("click", () => { theme.toggle(); app.render(); });
  document.title = `${data.title} – lapwing explorer`;
  const about = [`${model.dim} eigenfunctions`, `${model.count.toLocaleString("en")} states`,
    model.dim > 1 && model.first ? `λ₂ = ${shown(model.spectrum.learned[1])}` : null,
    model.spectrum.cosine ? `cosine ${shown(mean(model.spectrum.cosine))} with the exact ones` : null,
    model.spectrum.trusted ? `${model.spectrum.trusted.length} trusted` : null].filter(Boolean).join(" · ");
  document.getElementById("page").replaceChildren(
    h("header", {}, h("div", {}, h("p", { class: "brand" }, "lapwing explorer"), h("h1", {}, data.title),
      h("p", { class: "about" }, about)), theme.button),
    tabs(app),
    h("main", {}, data.remarks.length ? h("ul", { class: "remarks" }, data.remarks.map((words) => h("li", {}, words))) : null,
      VIEWS.map(([id]) => h("div", { id: `panel-${id}`, role: "tabpanel", "aria-labelledby": `tab-${id}`, hidden: "" }))),
    h("footer", {}, `Made by lapwing ${data.version}. This page is one file and sends nothing anywhere.`));
  const named = location.hash.slice(1);
  app.open(VIEWS.some(([id]) => id === named) ? named : "eigenfunctions");
  window.addEventListener("resize", () => app.refresh());
  window.addEventListener("hashchange", () => {
    const id = location.hash.slice(1);
    if (VIEWS.some(([each]) => each === id)) app.open(id);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.render());
  performance.measure("lapwing:first", { start: 0, end: performance.now() });
  window.lapwing = app;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

begin();
