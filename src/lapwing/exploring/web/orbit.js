// Turning about states in three dimensions: where they are seen, and turns by mouse, fingers and keys.

export const PERSPECTIVE = 0.2;  // so much larger is what is in front of the middle, and smaller what is behind
export const FILLED = 0.47;  // of the shorter side of the canvas

const STEEPEST = 1.5, ZOOMS = [0.4, 6], STEP = 0.1, TAP = 4;

// From coordinates in the unit ball to pixels and depth, which is above 0 behind the middle.
export function projection(view, width, height) {
  const [ct, st, cp, sp] = anglesOf(view), size = FILLED * Math.min(width, height) * view.zoom;
  return (x, y, z) => {
    const deep = -st * x + ct * z, depth = sp * y + cp * deep, near = size / (1 + PERSPECTIVE * depth);
    return [width / 2 + near * (ct * x + st * z), height / 2 - near * (cp * y - sp * deep), depth];
  };
}

export function anglesOf({ turn, tilt }) {
  return [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
}

// The state nearest to a pixel, at most 20 away; of those at the same pixel the one in front.
export function nearestSeen(xyz, seen, x, y) {
  let best = null, least = 20 ** 2;
  for (let i = 0; i < xyz.length / 3; i++) {
    const [px, py, depth] = seen(xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]);
    const apart = (px - x) ** 2 + (py - y) ** 2 + depth;
    if (apart < least) [best, least] = [i, apart];
  }
  return best;
}

export function turned(view, right, down) {
  view.turn += right;
  view.tilt = Math.max(-STEEPEST, Math.min(STEEPEST, view.tilt + down));
}

export function zoomed(view, factor) {
  view.zoom = Math.max(ZOOMS[0], Math.min(ZOOMS[1], view.zoom * factor));
}

// Drag or arrow keys turn, wheel, pinch and + - zoom; `pointed` gets the pixel that is pointed at or tapped.
export function listenToTurns(canvas, view, changed, pointed) {
  const fingers = new Map();
  let moved = 0;
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    pointed(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return point(event);
    const before = fingers.size === 2 ? spread() : null;
    const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
    [finger.x, finger.y] = [event.clientX, event.clientY];
    moved += Math.abs(dx) + Math.abs(dy);
    if (before) zoomed(view, spread() / before);
    else turned(view, dx * 0.01, dy * 0.01);
    return changed();
  });
  canvas.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (moved < TAP) point(event);
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomed(view, event.deltaY < 0 ? 1.1 : 1 / 1.1);
    changed();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (by) turned(view, ...by);
    else if (event.key === "+" || event.key === "=") zoomed(view, 1.1);
    else if (event.key === "-") zoomed(view, 1 / 1.1);
    else return;
    event.preventDefault();
    changed();
  });
}
