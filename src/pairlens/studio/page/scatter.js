// @ts-check
/** Drawing many points: by WebGL2 where there is some, else a sample of them on a plain canvas. */

/** @typedef {{x: number, y: number, zoom: number}} Camera middle of the picture and pixels for a unit, in CSS pixels */
/**
 * @typedef {object} Scene
 * @property {Float32Array} from places before
 * @property {Float32Array} to places now
 * @property {Uint8Array} colours four bytes for each point
 * @property {Float32Array} sizes
 */

export const MOST_ON_CANVAS = 5000;

const VERTEX = `#version 300 es
in vec2 before; in vec2 place; in vec4 colour; in float size;
uniform vec2 middle; uniform vec2 zoom; uniform float share; uniform float scale;
out vec4 ink; out float radius;
void main() {
  vec2 at = (mix(before, place, share) - middle) * zoom;
  gl_Position = vec4(at, 0.0, 1.0);
  gl_PointSize = size * scale + 1.5;
  radius = gl_PointSize;
  ink = colour;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 ink; in float radius; out vec4 result;
void main() {
  float edge = length(gl_PointCoord - 0.5) * radius;
  float cover = clamp(radius * 0.5 - edge, 0.0, 1.0);
  result = vec4(ink.rgb, 1.0) * ink.a * cover;
}`;

/** Points by WebGL2. */
export class GlScatter {
  /** @param {HTMLCanvasElement} canvas @param {WebGL2RenderingContext} gl */
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.sampled = 0;
    this.count = 0;
    this.setUp();
  }

  setUp() {
    const gl = this.gl;
    const program = /** @type {WebGLProgram} */ (gl.createProgram());
    for (const [kind, text] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "no program");
    this.program = program;
    /** @type {Record<string, WebGLBuffer>} */
    this.buffers = {};
    for (const name of ["before", "place", "colour", "size"]) this.buffers[name] = /** @type {WebGLBuffer} */ (gl.createBuffer());
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
  }

  /** @param {Scene} scene */
  load(scene) {
    const gl = this.gl;
    this.count = scene.to.length / 2;
    const fill = (/** @type {string} */ name, /** @type {ArrayBufferView} */ values, /** @type {number} */ width, /** @type {number} */ type, normal = false) => {
      const place = gl.getAttribLocation(/** @type {WebGLProgram} */ (this.program), name);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, width, type, normal, 0, 0);
    };
    fill("before", scene.from, 2, gl.FLOAT);
    fill("place", scene.to, 2, gl.FLOAT);
    fill("colour", scene.colours, 4, gl.UNSIGNED_BYTE, true);
    fill("size", scene.sizes, 1, gl.FLOAT);
  }

  /** @param {Camera} camera @param {number} share of the way from the old places to the new ones */
  draw(camera, share) {
    const { gl, canvas } = this;
    const ratio = devicePixelRatio || 1;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.program || !this.count) return;
    gl.useProgram(this.program);
    const uniform = (/** @type {string} */ name) => gl.getUniformLocation(/** @type {WebGLProgram} */ (this.program), name);
    gl.uniform2f(uniform("middle"), camera.x, camera.y);
    gl.uniform2f(uniform("zoom"), (2 * camera.zoom * ratio) / canvas.width, (2 * camera.zoom * ratio) / canvas.height);
    gl.uniform1f(uniform("share"), share);
    gl.uniform1f(uniform("scale"), ratio);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }
}

/** Points on a plain canvas: all up to 5,000, an even sample of more, those that stand out always. */
export class CanvasScatter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.sampled = 0;
    /** @type {number[]} */
    this.shown = [];
  }

  /** @param {Scene} scene */
  load(scene) {
    this.scene = scene;
    const n = scene.to.length / 2;
    const step = Math.max(1, n / MOST_ON_CANVAS);
    const even = Array.from({ length: Math.min(n, MOST_ON_CANVAS) }, (_, k) => Math.floor(k * step));
    const large = Math.max(...scene.sizes.subarray(0, 1), 0);
    const special = /** @type {number[]} */ ([]);
    for (let k = 0; k < n; k++) if (scene.sizes[k] > large + 1) special.push(k);
    this.shown = step > 1 ? [...even, ...special] : even;
    this.sampled = step > 1 ? even.length : 0;
  }

  /** @param {Camera} camera @param {number} share */
  draw(camera, share) {
    const { pen, canvas, scene } = this;
    const ratio = devicePixelRatio || 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (!scene) return;
    pen.setTransform(ratio, 0, 0, ratio, canvas.width / 2, canvas.height / 2);
    for (const k of this.shown) {
      const x = scene.from[2 * k] + share * (scene.to[2 * k] - scene.from[2 * k]);
      const y = scene.from[2 * k + 1] + share * (scene.to[2 * k + 1] - scene.from[2 * k + 1]);
      const [r, g, b, a] = scene.colours.subarray(4 * k, 4 * k + 4);
      pen.fillStyle = `rgba(${r},${g},${b},${a / 255})`;
      pen.beginPath();
      pen.arc((x - camera.x) * camera.zoom, -(y - camera.y) * camera.zoom, scene.sizes[k] / 2 + 0.5, 0, 7);
      pen.fill();
    }
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @returns {GlScatter | CanvasScatter}
 */
export function makeScatter(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true });
  return gl ? new GlScatter(canvas, gl) : new CanvasScatter(canvas);
}
