// @ts-check
/** Drawing many points: by WebGL2 where there is some, else a sample of them on a plain canvas. */

import { MARGIN, SHAPES } from "./marks.js";

/** @typedef {{x: number, y: number, zoom: number}} Camera middle of the picture and pixels for a unit, in CSS pixels */
/**
 * @typedef {object} Scene
 * @property {Float32Array} from places before
 * @property {Float32Array} to places now
 * @property {Uint8Array} colours four bytes for each point
 * @property {Float32Array} sizes
 * @property {Uint8Array} shapes 0 for a plain point, else one more than the place among the shapes
 * @property {Uint32Array} order in which they are drawn
 * @property {[number, number, number]} paper the colour around marks
 */

export const MOST_ON_CANVAS = 5000;

/** Half a cell of the sheet of shapes, as seen from a shape of half-width 1. */
const CELL = 1.4;
const CELL_PIXELS = 64;

const VERTEX = `#version 300 es
in vec2 before; in vec2 place; in vec4 colour; in float size; in float shape;
uniform vec2 middle; uniform vec2 zoom; uniform float share; uniform float scale;
out vec4 ink; out float radius; flat out float cell;
void main() {
  vec2 at = (mix(before, place, share) - middle) * zoom;
  gl_Position = vec4(at, 0.0, 1.0);
  gl_PointSize = shape > 0.5 ? size * scale * ${CELL} : size * scale + 1.5;
  radius = gl_PointSize;
  ink = colour;
  cell = shape - 1.0;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 ink; in float radius; flat in float cell; out vec4 result;
uniform sampler2D sheet; uniform vec3 paper;
void main() {
  if (cell < -0.5) {
    float edge = length(gl_PointCoord - 0.5) * radius;
    float cover = clamp(radius * 0.5 - edge, 0.0, 1.0);
    result = vec4(ink.rgb, 1.0) * ink.a * cover;
  } else {
    vec2 cover = texture(sheet, vec2((gl_PointCoord.x + cell) / ${SHAPES.length}.0, gl_PointCoord.y)).rg;
    result = vec4(mix(paper, ink.rgb, min(1.0, cover.g / max(cover.r, 0.01))), 1.0) * ink.a * cover.r;
  }
}`;

/** The shapes side by side: with their margins in red, without in green. */
function sheetOfShapes() {
  const sheet = document.createElement("canvas");
  sheet.width = CELL_PIXELS * SHAPES.length;
  sheet.height = CELL_PIXELS;
  const pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.globalCompositeOperation = "lighter";
  pen.lineWidth = 2 * MARGIN;
  pen.lineJoin = "round";
  SHAPES.forEach((outline, k) => {
    const scale = CELL_PIXELS / 2 / CELL;
    pen.setTransform(scale, 0, 0, scale, CELL_PIXELS * (k + 0.5), CELL_PIXELS / 2);
    const path = new Path2D(outline);
    pen.fillStyle = pen.strokeStyle = "#f00";
    pen.fill(path);
    pen.stroke(path);
    pen.fillStyle = "#0f0";
    pen.fill(path);
  });
  return sheet;
}

/** Points by WebGL2. */
export class GlScatter {
  /** @param {HTMLCanvasElement} canvas @param {WebGL2RenderingContext} gl */
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.sampled = 0;
    /** @type {Scene | null} */
    this.scene = null;
    this.setUp();
    // The graphics card may be taken away, as when a laptop sleeps; what was drawn comes back with it.
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.setUp();
      if (this.scene) this.load(this.scene);
      this.restored();
    });
  }

  /** Called when all has to be drawn again. */
  restored() {}

  setUp() {
    const gl = this.gl;
    const program = /** @type {WebGLProgram} */ (gl.createProgram());
    for (const [kind, text] of /** @type {[number, string][]} */ ([
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS))
      throw new Error(gl.getProgramInfoLog(program) ?? "no program");
    this.program = program;
    /** @type {Record<string, WebGLBuffer>} */
    this.buffers = {};
    for (const name of ["before", "place", "colour", "size", "shape", "order"])
      this.buffers[name] = /** @type {WebGLBuffer} */ (gl.createBuffer());
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, sheetOfShapes());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.generateMipmap(gl.TEXTURE_2D);
  }

  /** @param {Scene} scene */
  load(scene) {
    const gl = this.gl;
    this.scene = scene;
    const fill = (
      /** @type {string} */ name,
      /** @type {ArrayBufferView} */ values,
      /** @type {number} */ width,
      /** @type {number} */ type,
      normal = false,
    ) => {
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
    fill("shape", scene.shapes, 1, gl.UNSIGNED_BYTE);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, scene.order, gl.DYNAMIC_DRAW);
  }

  /** @param {Camera} camera @param {number} share of the way from the old places to the new ones */
  draw(camera, share) {
    const { gl, canvas } = this;
    const ratio = devicePixelRatio || 1;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.program || !this.scene?.order.length) return;
    gl.useProgram(this.program);
    const uniform = (/** @type {string} */ name) =>
      gl.getUniformLocation(/** @type {WebGLProgram} */ (this.program), name);
    gl.uniform2f(uniform("middle"), camera.x, camera.y);
    gl.uniform2f(uniform("zoom"), (2 * camera.zoom * ratio) / canvas.width, (2 * camera.zoom * ratio) / canvas.height);
    gl.uniform1f(uniform("share"), share);
    gl.uniform1f(uniform("scale"), ratio);
    gl.uniform3f(uniform("paper"), ...this.scene.paper);
    gl.drawElements(gl.POINTS, this.scene.order.length, gl.UNSIGNED_INT, 0);
  }
}

/** Points on a plain canvas: all up to 5,000, an even sample of more, those with a group always. */
export class CanvasScatter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.sampled = 0;
    this.outlines = SHAPES.map((outline) => new Path2D(outline));
    /** @type {number[]} */
    this.shown = [];
  }

  /** @param {Scene} scene */
  load(scene) {
    this.scene = scene;
    const n = scene.to.length / 2;
    const step = Math.max(1, n / MOST_ON_CANVAS);
    const even = new Set(Array.from({ length: Math.min(n, MOST_ON_CANVAS) }, (_, k) => Math.floor(k * step)));
    this.shown = step > 1 ? [...scene.order].filter((k) => scene.shapes[k] || even.has(k)) : [...scene.order];
    this.sampled = step > 1 ? even.size : 0;
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
      const [left, top] = [(x - camera.x) * camera.zoom, -(y - camera.y) * camera.zoom];
      if (scene.shapes[k]) this.mark(left, top, scene.sizes[k] / 2, scene.shapes[k] - 1, scene.paper);
      else {
        pen.beginPath();
        pen.arc(left, top, scene.sizes[k] / 2 + 0.5, 0, 7);
        pen.fill();
      }
    }
  }

  /** @param {number} left @param {number} top @param {number} half @param {number} shape @param {[number, number, number]} paper */
  mark(left, top, half, shape, paper) {
    const { pen } = this;
    pen.save();
    pen.translate(left, top);
    pen.scale(half, half);
    pen.strokeStyle = `rgb(${paper.map((part) => 255 * part).join(" ")})`;
    pen.lineWidth = 2 * MARGIN;
    pen.lineJoin = "round";
    pen.stroke(this.outlines[shape]);
    pen.fill(this.outlines[shape]);
    pen.restore();
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
