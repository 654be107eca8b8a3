// Elements without markup in strings: whatever a name holds, it is shown as text.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";

export function subscript(number) {
  return String(number).replace(/\d/g, (digit) => SUBSCRIPTS[digit]);
}

export function shown(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  return size >= 1e5 || size < 1e-4 ? value.toExponential(digits - 1) : String(+value.toPrecision(digits));
}

// A slider with its name and value beside it.
export function slider(label, { min, max, step = 1, value, show = String, oninput }) {
  const output = h("output", {}, show(value));
  const input = h("input", { type: "range", min, max, step, value, "aria-label": label });
  input.addEventListener("input", () => oninput(Number(input.value)));
  const element = h("label", { class: "field" }, h("span", {}, label), input, output);
  return { element, input, set: (next) => { input.value = next; output.textContent = show(next); } };
}

export function choice(label, options, value, onchange) {
  const select = h("select", { "aria-label": label }, options.map(([name, words]) =>
    h("option", { value: name }, words)));
  select.value = value;
  select.addEventListener("change", () => onchange(select.value));
  return { element: h("label", { class: "field" }, h("span", {}, label), select), select };
}

// Names and numbers, two columns.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function code(text, label) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `copy ${label}` }, "copy");
  button.addEventListener("click", () => copied(text, button));
  return h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": label }, text), button);
}

// The clipboard may be closed to a page from a file: then the old way, by a selection.
export async function copied(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = done ? "copied" : "select it and press Ctrl-C";
  setTimeout(() => { button.textContent = before; }, 1500);
}
