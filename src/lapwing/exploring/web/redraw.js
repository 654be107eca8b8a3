// An image of one's own: that at the goal with pixels painted over. φ of it, seen or not, becomes the goal.

const SWATCHES = 6, BRUSHES_ACROSS = 20;

// A form beside the map; a sentence where φ cannot be asked; null where observations are no images.
export function imageForm(app) {
  const { model } = app, { pictures, network } = model.data, shape = network && network.shape;
  if (!pictures.length) return null;
  if (!shape) return h("p", { class: "dim" }, "The network is not in the page, so images cannot be redrawn.");
  const [height, width, depth] = shape, size = Math.max(1, Math.round(Math.max(height, width) / BRUSHES_ACROSS));
  const canvas = h("canvas", { class: "seen pixels", width, height, tabindex: "0", role: "img",
    "aria-label": "an image to paint on: arrow keys move, Enter paints" });
  const context = canvas.getContext("2d", { willReadFrequently: true }), cursor = { x: 0, y: 0 };
  const swatches = h("div", { class: "swatches", role: "radiogroup", "aria-label": "colour" });
  const words = h("p", { class: "dim", role: "status" }, "Paint over what is observed at the goal, and φ says where it is.");
  let colour = "#000000";
  canvas.style.filter = swatches.style.filter = brightened(model);

  function choose(colours) {
    swatches.replaceChildren(...colours.map((each, index) => {
      const input = h("input", { type: "radio", name: "swatch", "aria-label": `colour ${each}` }), patch = h("span");
      patch.style.background = each;
      input.checked = index === 0;
      input.addEventListener("change", () => { colour = each; });
      return h("label", {}, input, patch);
    }));
    [colour] = colours;
  }

  async function take(state) {
    if (state >= pictures.length) {
      words.textContent = "No picture of this state is in the page; choose another goal.";
      return;
    }
    const image = new Image();
    image.src = `data:image/png;base64,${pictures[state]}`;
    await image.decode();
    if (image.naturalWidth !== width || image.naturalHeight !== height) {
      words.textContent = "Images in the page are smaller than those that φ sees, so they cannot be redrawn.";
      return;
    }
    context.drawImage(image, 0, 0);
    choose(commonColours(context.getImageData(0, 0, width, height).data));
  }

  function paint(x, y) {
    context.fillStyle = colour;
    context.fillRect(Math.floor(x / size) * size, Math.floor(y / size) * size, size, size);
  }

  function submit(event) {
    event.preventDefault();
    const { data } = context.getImageData(0, 0, width, height);
    const phi = model.forward(pixelsOf(data, depth)), functions = combined(phi, model.coefficients);
    const state = nearestFunctions(model, functions);
    words.textContent = `φ of this image is nearest to that of ${nameOf(model, { state })}.`;
    app.set({ goal: { state, point: Array.from(rowOf(model.points, state)), phi, functions } });
  }
  listenToPixels(canvas, paint, cursor, size);
  take(app.state.goal.state);
  return h("form", { class: "unseen", onsubmit: submit },
    h("h3", {}, "An image of your own"), canvas, swatches, words,
    h("div", { class: "buttons" }, h("button", { type: "submit" }, "set as goal"),
      h("button", { type: "button", onclick: () => take(app.state.goal.state) }, "from the map")));
}

// Numbers from 0 to 1, channels last, as φ sees them.
function pixelsOf(rgba, depth) {
  const found = new Float64Array(rgba.length / 4 * depth);
  for (let i = 0; i < found.length; i++) found[i] = rgba[4 * Math.floor(i / depth) + i % depth] / 255;
  return found;
}

// Those that few pixels have come first: what stands out is what one wants to move.
function commonColours(rgba) {
  const counts = new Map();
  for (let i = 0; i < rgba.length; i += 4) {
    const hex = `#${[0, 1, 2].map((c) => rgba[i + c].toString(16).padStart(2, "0")).join("")}`;
    counts.set(hex, (counts.get(hex) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, SWATCHES).map(([hex]) => hex).reverse();
}

function listenToPixels(canvas, paint, cursor, size) {
  let down = false;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    paint((event.clientX - box.left) / box.width * canvas.width, (event.clientY - box.top) / box.height * canvas.height);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down = true;
    at(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (down) at(event); });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { down = false; });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (by) {
      cursor.x = Math.max(0, Math.min(canvas.width - 1, cursor.x + size * by[0]));
      cursor.y = Math.max(0, Math.min(canvas.height - 1, cursor.y + size * by[1]));
      canvas.setAttribute("aria-label", `an image to paint on: row ${cursor.y}, column ${cursor.x}; Enter paints`);
    } else if (event.key === "Enter" || event.key === " ") paint(cursor.x, cursor.y);
    else return;
    event.preventDefault();
  });
}
