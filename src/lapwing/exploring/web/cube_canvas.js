// The embedding without WebGL: the same axes, edges and points on a canvas, those behind first.

export function canvasPainter(context, edges) {
  function draw(xyz, shade, map, view, { width, height, dot }) {
    const count = xyz.length / 3, seen = projection(view, width, height);
    const placed = Array.from({ length: count }, (_, i) => seen(xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]));
    const line = (from, to) => {
      context.moveTo(from[0], from[1]);
      context.lineTo(to[0], to[1]);
    };
    context.strokeStyle = style("--dim");
    context.globalAlpha = 0.4;
    context.beginPath();
    for (const axis of [[1, 0, 0], [0, 1, 0], [0, 0, 1]]) line(seen(...axis.map((each) => -each)), seen(...axis));
    for (let e = 0; e < edges.length; e += 2) line(placed[edges[e]], placed[edges[e + 1]]);
    context.stroke();
    context.globalAlpha = 1;
    const order = Array.from(placed.keys()).sort((a, b) => placed[b][2] - placed[a][2]);
    for (const i of order) {
      const [x, y, depth] = placed[i], side = dot / (1 + PERSPECTIVE * depth);
      context.fillStyle = "rgba(20,30,30,.45)";
      context.fillRect(x - side / 2 - 0.7, y - side / 2 - 0.7, side + 1.4, side + 1.4);
      context.fillStyle = map.css[Math.max(0, shade[i])];
      context.fillRect(x - side / 2, y - side / 2, side, side);
    }
  }
  return { draw, lost: () => false };
}
