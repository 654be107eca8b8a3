// A reacher's plan: the way over landmarks, as lapwing.reaching.planner finds it.

const ENTRIES = 4;

export function openedPlan(described) {
  if (!described) return null;
  const plan = { weights: described.weights, local: described.local };
  for (const name of ["points", "coordinates", "begins", "ends", "steps", "perLength"]) {
    plan[name] = unpacked(described[name]);
  }
  plan.incoming = Array.from({ length: plan.points.rows }, () => []);
  plan.begins.data.forEach((begin, edge) => plan.incoming[plan.ends.data[edge]].push(edge));
  return plan;
}

// Eigenfunctions times their weights (or φ), and beside them the numbers of the observation.
function coordinatesOf(plan, model, place) {
  const found = plan.weights ? plan.weights[0].map((j, i) => plan.weights[1][i] * place.functions[j]) : Array.from(place.phi);
  if (plan.local) {
    const seen = place.observation || rowOf(model.observations, place.state);
    plan.local.scale.forEach((scale, i) => found.push(scale * (seen[i] - plan.local.shift[i])));
  }
  return found;
}

function entries(plan, here) {
  const m = plan.coordinates.columns;
  const apart = Array.from({ length: plan.points.rows }, (_, i) => {
    let sum = 0;
    for (let j = 0; j < m; j++) sum += (plan.coordinates.data[i * m + j] - here[j]) ** 2;
    return [Math.sqrt(sum), i];
  });
  return apart.sort((a, b) => a[0] - b[0]).slice(0, ENTRIES)
    .map(([distance, i]) => ({ landmark: i, steps: distance * plan.perLength.data[i] }));
}

// Dijkstra backwards from the last landmarks: the steps from each, and what follows it.
function backwards(plan, last) {
  const steps = new Float64Array(plan.points.rows).fill(Infinity);
  const following = new Int32Array(plan.points.rows).fill(-1), done = new Uint8Array(steps.length);
  for (const { landmark, steps: more } of last) steps[landmark] = more;
  for (;;) {
    let here = -1;
    for (let i = 0; i < steps.length; i++) {
      if (!done[i] && steps[i] < Infinity && (here < 0 || steps[i] < steps[here])) here = i;
    }
    if (here < 0) return { steps, following };
    done[here] = 1;
    for (const edge of plan.incoming[here]) {
      const before = plan.begins.data[edge], longer = steps[here] + plan.steps.data[edge];
      if (longer < steps[before]) {
        steps[before] = longer;
        following[before] = here;
      }
    }
  }
}

// {route, steps}: the landmarks from a start to a goal; null where no way leads.
export function planned(plan, model, start, goal) {
  const last = entries(plan, coordinatesOf(plan, model, goal));
  const first = entries(plan, coordinatesOf(plan, model, start));
  const { steps, following } = backwards(plan, last);
  let best = null;
  for (const { landmark, steps: more } of first) {
    if (best === null || more + steps[landmark] < best.steps) best = { landmark, steps: more + steps[landmark] };
  }
  if (best === null || best.steps === Infinity) return null;
  const route = [];
  for (let here = best.landmark; here >= 0; here = following[here]) route.push(here);
  return { route, steps: best.steps };
}
