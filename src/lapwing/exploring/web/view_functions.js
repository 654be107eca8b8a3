// Eigenfunctions one by one, the exact one beside, and all of them small.

const STRIP_STATES = 1600;

export function functionsView(app) {
  const { model } = app, { spectrum } = model;
  const onhover = (hover) => app.set({ hover });
  const onpick = (place) => app.set({ hover: place.state });
  const learned = new StateMap(model, "learned eigenfunction", { onhover, onpick });
  const exact = model.exact ? new StateMap(model, "exact eigenfunction", { onhover, onpick }) : null;
  const title = h("h2", { id: "function-title" });
  const numbers = h("div"), under = h("div"), beneath = h("div");
  const k = slider("eigenfunction", {
    min: 1, max: model.dim, value: app.state.k + 1, show: (value) => `${value} of ${model.dim}`,
    oninput: (value) => app.set({ k: value - 1 }),
  });
  const strip = h("div", { class: "strip", role: "group", "aria-label": "all eigenfunctions" });
  const thumbs = Array.from({ length: model.dim }, (_, index) => {
    const canvas = h("canvas", { width: 80, height: 80, "aria-hidden": "true" });
    const button = h("button", {
      type: "button", class: "thumb", "aria-label": `eigenfunction ${index + 1}`,
      onclick: () => app.set({ k: index }),
    }, canvas, h("span", {}, `f${subscript(index + 1)}`));
    strip.append(button);
    return { canvas, button };
  });
  const picture = pictureOf(app);
  const element = h("section", { class: "view" },
    h("p", { class: "lead" }, "Each eigenfunction is a pattern over the states that changes slowly along the " +
      "walks φ was learned from. The first are the slowest: they separate rooms and corridors."),
    h("div", { class: "controls" }, k.element),
    h("div", { class: "columns" },
      h("figure", {}, h("figcaption", {}, title), learned.canvas, under),
      exact ? h("figure", {}, h("figcaption", {}, h("h2", {}, "exact")), exact.canvas, beneath) : null,
      h("aside", { class: "side" }, numbers, picture.element)),
    strip);

  let thumbsDrawn = false;
  function drawThumbs() {
    thumbsDrawn = true;
    thumbs.forEach(({ canvas }, index) => drawThumb(canvas, model, index, app.colours.diverging));
  }

  function render({ k: index, hover }) {
    k.set(index + 1);
    const values = columnOf(model.functions, index), range = symmetric(values), colours = app.colours.diverging;
    const name = `f${subscript(index + 1)}`;
    title.textContent = model.first ? name : `column ${index + 1}`;
    const value = hover === null ? null : values[hover];
    const says = `${name}, eigenvalue ${shown(spectrum.learned[index], 4)}` +
      (hover === null ? "" : `; at ${nameOf(model, { state: hover })} it is ${shown(value)}`);
    learned.draw({ values, range, colours, hover, says });
    under.replaceChildren(legend(colours, range));
    if (exact) {
      const wanted = columnOf(model.exact, index), size = symmetric(wanted);
      exact.draw({ values: wanted, range: size, colours, hover });
      beneath.replaceChildren(legend(colours, size));
    }
    numbers.replaceChildren(facts([
      ["eigenvalue λ", shown(spectrum.learned[index], 4)],
      spectrum.exact && index < spectrum.exact.length ? ["exact λ", shown(spectrum.exact[index], 4)] : null,
      spectrum.heldOut && index < spectrum.heldOut.length ? ["λ on held-out episodes",
        `${shown(spectrum.heldOut[index], 4)} ± ${shown(spectrum.spread[index], 2)}`] : null,
      spectrum.cosine && index < spectrum.cosine.length ? ["cosine with the exact one", shown(spectrum.cosine[index], 4)] : null,
      spectrum.trusted ? ["trusted", spectrum.trusted.includes(index) ? "yes" : "no"] : null,
      hover === null ? ["at a state", "point at the map"] : [nameOf(model, { state: hover }), shown(value)],
    ]));
    picture.render(hover);
    thumbs.forEach(({ button }, at) => button.setAttribute("aria-pressed", String(at === index)));
    if (!thumbsDrawn) setTimeout(drawThumbs, 30);
  }
  return { element, render };
}

function drawThumb(canvas, model, index, colours) {
  const values = columnOf(model.functions, index), shade = shades(values, symmetric(values));
  const bounds = boundsOf(model), context = canvas.getContext("2d"), side = canvas.width;
  const scale = bounds.square
    ? Array(2).fill(side / Math.max(bounds.width, bounds.height))
    : [side / bounds.width, side / bounds.height];
  const every = Math.max(1, Math.floor(model.count / STRIP_STATES));
  const size = (model.scene.spacing || 0) * scale[0] * Math.sqrt(every) || 3;
  const aside = [(side - bounds.width * scale[0]) / 2, (side - bounds.height * scale[1]) / 2];
  for (let i = 0; i < model.count; i += every) {
    context.fillStyle = colours.css[shade[i]];
    context.fillRect(aside[0] + (model.points.data[2 * i] - bounds.left) * scale[0] - size / 2,
      aside[1] + (model.points.data[2 * i + 1] - bounds.top) * scale[1] - size / 2, size + 0.5, size + 0.5);
  }
}

// Some images number things from 0 on, and would be black.
export function brightened({ data }) {
  return data.brightness === 1 ? "" : `brightness(${data.brightness})`;
}

// What was observed at the state pointed at, where observations are images.
export function pictureOf(app) {
  const { pictures } = app.model.data;
  if (!pictures.length) return { element: null, render: () => {} };
  const image = h("img", { class: "seen", alt: "what is observed at the state pointed at" });
  const words = h("p", { class: "dim" });
  image.style.filter = brightened(app.model);
  return {
    element: h("figure", { class: "small" }, image, words),
    render(state) {
      const at = state === null ? 0 : state;
      const there = at < pictures.length;
      image.hidden = !there;
      if (there) image.src = `data:image/png;base64,${pictures[at]}`;
      words.textContent = there ? `what is observed at ${nameOf(app.model, { state: at })}` : "no picture of this state is in the page";
    },
  };
}
