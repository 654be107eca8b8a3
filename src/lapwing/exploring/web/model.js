// What the page knows of a representation: tables over the states shown, and φ of any other observation.

export function modelOf(data) {
  const scene = data.scene, model = {
    data, scene,
    points: unpacked(scene.points),
    neighbours: unpacked(scene.neighbours),
    functions: unpacked(data.functions),
    phi: unpacked(data.phi),
    exact: unpacked(data.exact),
    observations: unpacked(data.observations),
    coefficients: unpacked(data.coefficients),
    filters: data.filters,
    spectrum: data.spectrum,
    forward: forwardOf(data.network),
    plan: openedPlan(data.plan),
  };
  model.count = model.points.rows;
  model.dim = model.functions.columns;
  model.first = data.rotated && model.dim > 1 ? 1 : 0;
  model.continuous = Boolean(!scene.discrete && scene.toFeatures && model.forward);
  model.nearest = nearestIn(model.points);
  return model;
}

// A function from a point to the nearest state, by squares of a grid, which is made when it is first asked.
export function nearestIn(points) {
  let grid = null;
  return (x, y) => {
    grid = grid || gridOf(points);
    return nearestOf(grid, x, y);
  };
}

function gridOf(points) {
  const xs = columnOf(points, 0), ys = columnOf(points, 1), [left, right] = extent(xs), [top, bottom] = extent(ys);
  const side = Math.max(right - left, bottom - top, 1e-9) / Math.max(1, Math.sqrt(points.rows)) || 1;
  const columns = Math.floor((right - left) / side) + 1, rows = Math.floor((bottom - top) / side) + 1;
  const grid = { xs, ys, left, top, side, columns, rows, squares: Array.from({ length: columns * rows }, () => []) };
  for (let i = 0; i < points.rows; i++) {
    const [column, row] = squareOf(grid, xs[i], ys[i]);
    grid.squares[row * columns + column].push(i);
  }
  return grid;
}

function squareOf({ left, top, side, columns, rows }, x, y) {
  const clipped = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
  return [clipped((x - left) / side, columns), clipped((y - top) / side, rows)];
}

function nearestOf(grid, x, y) {
  const { xs, ys, side, columns, rows, squares } = grid, [column, row] = squareOf(grid, x, y);
  let best = -1, least = Infinity;
  for (let ring = 0; ring <= Math.max(columns, rows); ring++) {
    if (best >= 0 && (ring - 1) * side > Math.sqrt(least)) break;
    for (let r = row - ring; r <= row + ring; r++) {
      if (r < 0 || r >= rows) continue;
      const whole = Math.abs(r - row) === ring;
      for (let c = column - ring; c <= column + ring; c += whole ? 1 : Math.max(1, 2 * ring)) {
        if (c < 0 || c >= columns) continue;
        for (const i of squares[r * columns + c]) {
          const apart = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
          if (apart < least) [best, least] = [i, apart];
        }
      }
    }
  }
  return best;
}

// A state as a place: where it is drawn, and its φ and eigenfunctions.
export function placeOf(model, state) {
  return {
    state,
    point: Array.from(rowOf(model.points, state)),
    functions: rowOf(model.functions, state),
    phi: model.phi ? rowOf(model.phi, state) : null,
  };
}

// What φ sees at a point: the features that the point gives, and the others as at the nearest state.
export function observationAt(model, point, state) {
  const seen = model.observations ? Array.from(rowOf(model.observations, state)) : [0, 0];
  model.scene.toFeatures.forEach(([x, y, offset], i) => { seen[i] = x * point[0] + y * point[1] + offset; });
  return seen;
}

// Any point as a place: by the network, where there is one and the point is not in a wall.
export function placeAt(model, x, y) {
  const state = model.nearest(x, y);
  if (!model.continuous || !isFloor(model.scene.lines, x, y)) return placeOf(model, state);
  const observation = observationAt(model, [x, y], state), phi = model.forward(observation);
  return { state, point: [x, y], observation, phi, functions: combined(phi, model.coefficients) };
}

export function isFloor(lines, x, y) {
  if (!lines) return true;
  const row = lines[Math.floor(y)];
  return row !== undefined && row[Math.floor(x)] !== undefined && row[Math.floor(x)] !== "#";
}

export function nameOf(model, place) {
  if (model.scene.discrete) {
    const [x, y] = rowOf(model.points, place.state);
    return `row ${Math.floor(y)}, column ${Math.floor(x)}`;
  }
  const seen = place.observation || (model.observations ? Array.from(rowOf(model.observations, place.state)) : null);
  if (!seen) return `state ${model.states ? model.states[place.state] : place.state}`;
  return `(${seen.slice(0, 4).map((value) => shown(value)).join(", ")}${seen.length > 4 ? ", …" : ""})`;
}
