// Eigenvalues: learned, exact, and on held-out episodes; and which are trusted.

export function spectrumView(app) {
  const { model } = app, { spectrum } = model;
  const numbers = Array.from({ length: model.dim }, (_, i) => i + 1);
  const holder = h("div"), body = h("tbody");
  const trusts = (index) => !spectrum.trusted || spectrum.trusted.includes(index);
  const columns = ["", "learned", spectrum.exact && "exact", spectrum.heldOut && "held-out", spectrum.cosine && "cosine",
    spectrum.trusted && "trusted"].filter((each) => each !== null && each !== undefined);
  const rows = numbers.map((number, index) => {
    const cells = [`λ${subscript(number)}`, shown(spectrum.learned[index], 4)];
    if (spectrum.exact) cells.push(shown(spectrum.exact[index], 4));
    if (spectrum.heldOut) cells.push(`${shown(spectrum.heldOut[index], 4)} ± ${shown(spectrum.spread[index], 2)}`);
    if (spectrum.cosine) cells.push(shown(spectrum.cosine[index], 4));
    if (spectrum.trusted) cells.push(trusts(index) ? "yes" : "no");
    const row = h("tr", { tabindex: "0" }, cells.map((text) => h("td", {}, text)));
    row.addEventListener("click", () => app.set({ k: index }));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") app.set({ k: index }); });
    body.append(row);
    return row;
  });
  const learned = "var(--learned)", exact = "var(--exact)", held = "var(--held)";
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "An eigenvalue says how quickly its function changes in a step: 0 not at all. " +
      "Learned ones should lie on the exact ones, or within what held-out episodes say."),
    keyOf([
      ["learned", learned, "dot"],
      spectrum.trusted && spectrum.trusted.length < model.dim ? ["learned, not trusted", "var(--untrusted)", "dot"] : null,
      spectrum.exact ? [`exact (${spectrum.operator})`, exact, "ring"] : null,
      spectrum.heldOut ? ["on held-out episodes ± spread", held, "ring"] : null,
    ]),
    h("div", { class: "columns wide" }, holder,
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, columns.map((name) =>
        h("th", { scope: "col" }, name)))), body))));

  function render({ k }) {
    const known = (values) => values.slice(0, model.dim);
    const split = (wanted) => numbers.filter((_, index) => trusts(index) === wanted);
    holder.replaceChildren(chart({
      label: `eigenvalues; the ${k + 1}th is ${shown(spectrum.learned[k], 4)}`,
      xLabel: "eigenfunction", yLabel: "eigenvalue", chosen: k + 1,
      onpick: (number) => app.set({ k: Math.max(0, Math.min(model.dim - 1, number - 1)) }),
      series: [
        spectrum.exact && { x: numbers.slice(0, spectrum.exact.length), y: known(spectrum.exact), mark: "ring", colour: exact },
        spectrum.heldOut && { x: numbers.slice(0, spectrum.heldOut.length), y: known(spectrum.heldOut),
          spread: spectrum.spread, mark: "ring", colour: held },
        { x: split(true), y: split(true).map((n) => spectrum.learned[n - 1]), mark: "dot", colour: learned },
        { x: split(false), y: split(false).map((n) => spectrum.learned[n - 1]), mark: "dot", colour: "var(--untrusted)" },
      ].filter(Boolean),
    }));
    rows.forEach((row, index) => row.classList.toggle("current", index === k));
  }
  return { element, render };
}
