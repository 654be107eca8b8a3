// The embedding by WebGL: axes, edges and round points with depth. Turning it sets a few numbers and no more.

const VERTEX = `
attribute vec3 place, colour;
uniform vec4 angles;  // cos and sin of turn and tilt
uniform vec3 scale;  // of x and y, and the size of a point
uniform float back;  // lines lie behind the points that they join
varying vec3 shade;
varying float behind;
void main() {
  float deep = -angles.y * place.x + angles.x * place.z;
  float depth = angles.w * place.y + angles.z * deep;
  float near = 1.0 / (1.0 + ${PERSPECTIVE} * depth);
  vec2 seen = vec2(angles.x * place.x + angles.y * place.z, angles.z * place.y - angles.w * deep);
  gl_Position = vec4(scale.xy * near * seen, 0.5 * depth + back, 1.0);
  gl_PointSize = scale.z * near;
  shade = colour;
  behind = 0.5 + 0.5 * depth;
}`;

const FRAGMENT = `
precision mediump float;
uniform vec3 background;
uniform bool round;
varying vec3 shade;
varying float behind;
void main() {
  float away = round ? 2.0 * length(gl_PointCoord - 0.5) : 0.0;
  if (away > 1.0) discard;
  vec3 rimmed = away > 0.78 ? 0.55 * shade : shade;
  gl_FragColor = vec4(mix(rimmed, background, 0.35 * behind), 1.0);
}`;

const AXES = new Float32Array([-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1]);

// Something that draws on the canvas; null where there is no WebGL.
export function webglPainter(canvas, edges) {
  const gl = canvas.getContext("webgl", { antialias: true });
  const program = gl && linked(gl);
  if (!program) return null;
  const at = (name) => gl.getUniformLocation(program, name);
  const uniforms = Object.fromEntries(["angles", "scale", "background", "round", "back"].map((name) => [name, at(name)]));
  const [place, colour] = ["place", "colour"].map((name) => gl.getAttribLocation(program, name));
  const kept = (kind, content) => {
    const buffer = gl.createBuffer();
    gl.bindBuffer(kind, buffer);
    if (content) gl.bufferData(kind, content, gl.STATIC_DRAW);
    return buffer;
  };
  const axes = kept(gl.ARRAY_BUFFER, AXES), places = kept(gl.ARRAY_BUFFER), colours = kept(gl.ARRAY_BUFFER);
  kept(gl.ELEMENT_ARRAY_BUFFER, new Uint16Array(edges));
  gl.useProgram(program);
  gl.enable(gl.DEPTH_TEST);
  gl.enableVertexAttribArray(place);
  const from = (buffer, location, content) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    if (content) gl.bufferData(gl.ARRAY_BUFFER, content, gl.DYNAMIC_DRAW);
    gl.vertexAttribPointer(location, 3, gl.FLOAT, false, 0, 0);
  };
  let last = null;

  function draw(xyz, shade, map, view, { width, height, ratio, dot }) {
    const lines = rgb("--dim"), background = rgb("--panel"), size = 2 * FILLED * Math.min(width, height) * view.zoom;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniform4f(uniforms.angles, ...anglesOf(view));
    gl.uniform3f(uniforms.scale, size / width, size / height, (dot + 1.4) * ratio);
    gl.uniform3f(uniforms.background, ...background);
    gl.uniform1i(uniforms.round, 0);
    gl.uniform1f(uniforms.back, 0.04);
    gl.disableVertexAttribArray(colour);
    gl.vertexAttrib3f(colour, ...lines);
    from(axes, place);
    gl.drawArrays(gl.LINES, 0, 6);
    from(places, place, xyz === last ? null : xyz);
    last = xyz;
    if (edges.length) gl.drawElements(gl.LINES, edges.length, gl.UNSIGNED_SHORT, 0);
    gl.uniform1i(uniforms.round, 1);
    gl.uniform1f(uniforms.back, 0);
    gl.enableVertexAttribArray(colour);
    from(colours, colour, coloured(shade, map));
    gl.drawArrays(gl.POINTS, 0, shade.length);
  }
  return { draw, lost: () => gl.isContextLost() };
}

function linked(gl) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

function coloured(shade, map) {
  const found = new Float32Array(3 * shade.length);
  for (let i = 0; i < shade.length; i++) {
    for (let c = 0; c < 3; c++) found[3 * i + c] = map.bytes[3 * Math.max(0, shade[i]) + c] / 255;
  }
  return found;
}

function rgb(name) {
  const hex = style(name);
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
}
