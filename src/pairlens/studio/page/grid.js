// @ts-check
/** Which points are near a place, and which lie in a polygon: squares of equal size, each with its points. */

export class Grid {
  /**
   * @param {Float32Array} places x and y of each point in turn
   * @param {number} [perCell] points of a square, on average
   */
  constructor(places, perCell = 8) {
    this.places = places;
    const n = places.length / 2;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let k = 0; k < n; k++) {
      const x = places[2 * k];
      const y = places[2 * k + 1];
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
    if (!n) [left, right, low, high] = [0, 1, 0, 1];
    this.left = left;
    this.low = low;
    this.right = right;
    this.high = high;
    this.side = Math.max(1, Math.ceil(Math.sqrt(n / perCell)));
    this.width = (right - left || 1) / this.side;
    this.height = (high - low || 1) / this.side;
    this.starts = new Uint32Array(this.side * this.side + 1);
    const cells = new Uint32Array(n);
    for (let k = 0; k < n; k++) {
      cells[k] = this.cell(places[2 * k], places[2 * k + 1]);
      this.starts[cells[k] + 1]++;
    }
    for (let c = 0; c < this.side * this.side; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice(0, -1);
    this.members = new Uint32Array(n);
    for (let k = 0; k < n; k++) this.members[next[cells[k]]++] = k;
  }

  /** @param {number} x */
  column(x) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((x - this.left) / this.width)));
  }

  /** @param {number} y */
  line(y) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((y - this.low) / this.height)));
  }

  /** @param {number} x @param {number} y */
  cell(x, y) {
    return this.line(y) * this.side + this.column(x);
  }

  /**
   * Call with each point of the squares that meet a box.
   * @param {number} left @param {number} low @param {number} right @param {number} high
   * @param {(point: number) => void} use
   */
  within(left, low, right, high, use) {
    for (let line = this.line(low); line <= this.line(high); line++)
      for (let column = this.column(left); column <= this.column(right); column++) {
        const cell = line * this.side + column;
        for (let m = this.starts[cell]; m < this.starts[cell + 1]; m++) use(this.members[m]);
      }
  }

  /**
   * The point nearest to a place, at most `radius` away; -1 if there is none.
   * @param {number} x @param {number} y @param {number} radius
   */
  nearest(x, y, radius) {
    let best = -1;
    let least = radius * radius;
    this.within(x - radius, y - radius, x + radius, y + radius, (point) => {
      const distance = (this.places[2 * point] - x) ** 2 + (this.places[2 * point + 1] - y) ** 2;
      if (distance <= least) [best, least] = [point, distance];
    });
    return best;
  }

  /**
   * The points in a polygon.
   * @param {[number, number][]} polygon
   * @returns {number[]}
   */
  inside(polygon) {
    if (polygon.length < 3) return [];
    const xs = polygon.map(([x]) => x);
    const ys = polygon.map(([, y]) => y);
    const found = /** @type {number[]} */ ([]);
    this.within(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (point) => {
      if (contains(polygon, this.places[2 * point], this.places[2 * point + 1])) found.push(point);
    });
    return found.sort((a, b) => a - b);
  }
}

/**
 * Whether a place lies in a polygon: a ray from it crosses an odd number of edges.
 * @param {[number, number][]} polygon @param {number} x @param {number} y
 */
export function contains(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
