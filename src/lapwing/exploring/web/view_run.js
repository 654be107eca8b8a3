// How it was learned: curves or trials, measures, settings, and the words that make it again.

const CURVES = [["loss", "loss", "var(--learned)"], ["graph_drawing", "graph drawing G", "var(--exact)"],
  ["penalty", "orthonormality penalty", "var(--held)"]];

export function runView(app) {
  const { learning, run } = app.model.data, { data } = app.model;
  const list = (values) => h("table", {}, h("tbody", {}, Object.entries(values).map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, typeof value === "number" ? shown(value, 5) : text(value))))));
  const element = h("section", { class: "view" },
    learningPart(learning),
    h("h2", {}, "Make it again"),
    run.command ? code(run.command, "the command") : h("p", { class: "dim" }, "It was learned from arrays in memory."),
    code(run.python, "the Python lines"),
    h("div", { class: "columns wide" },
      Object.keys(run.measures).length ? h("div", { class: "scroll" }, h("h2", {}, "Measures"), list(run.measures)) : null,
      run.distances ? h("div", { class: "scroll" }, h("h2", {}, "Rank correlation with true distance"), list(run.distances)) : null,
      h("div", { class: "scroll" }, h("h2", {}, "Settings"), list(run.settings)),
      h("div", { class: "scroll" }, h("h2", {}, "Provenance"), list({
        ...run.source, run: run.path, lapwing: data.version, "sha256 of φ": run.sha256, φ: data.about,
      }))));
  return { element, render: () => {} };
}

function text(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function learningPart(learning) {
  if (!learning) return h("p", { class: "lead" }, "Nothing is recorded of how it was learned.");
  if (learning.tried) {
    const least = Math.min(...learning.tried.map((trial) => trial.score));
    const bars = learning.tried.map((trial, index) => {
      const bar = h("span", { class: index ? "trial" : "trial best", "aria-hidden": "true" });
      bar.style.width = `${Math.max(4, 100 * least / trial.score)}%`;
      return h("li", {}, h("span", {}, `${trial.what}${index ? "" : " (chosen)"}: ${shown(trial.score, 4)}`), bar);
    });
    return h("div", {}, h("p", { class: "lead" }, "It was computed in closed form. These were tried; the sum of " +
      "eigenvalues on validation episodes decided, lower is better (longer bar)."), h("ul", { class: "trials" }, bars));
  }
  const curves = CURVES.filter(([name]) => learning.series[name]);
  return h("div", {}, h("h2", {}, "Learning"),
    keyOf(curves.map(([, words, colour]) => [words, colour, "line"])),
    chart({
      label: "loss over steps", xLabel: "step", yLabel: "loss", logarithmic: true,
      series: curves.map(([name, , colour]) => ({ x: learning.step, y: learning.series[name], mark: "line", colour })),
    }));
}
