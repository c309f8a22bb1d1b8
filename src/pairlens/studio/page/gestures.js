// @ts-check
/** What fingers and the mouse do on the map: one moves it, two move and zoom it, a short touch points at a row. */

/** How far a touch may wander and still be a tap, in pixels. */
const TAP = 4;

/** @typedef {{dx: number, dy: number, factor: number, x: number, y: number}} Change how far to move, and how much to zoom about which place, in pixels */

/** Fingers (or the mouse) that are down, and what their moves amount to. */
export class Fingers {
  constructor() {
    /** @type {Map<number, [number, number]>} */
    this.down = new Map();
    this.travelled = 0;
  }

  get count() {
    return this.down.size;
  }

  /** Whether all of it was a tap of one finger. */
  get tapped() {
    return this.travelled <= TAP;
  }

  /** Middle of the fingers, and how far they are apart; 0 for one. @returns {[number, number, number]} */
  measure() {
    const [first, second = first] = [...this.down.values()];
    return [
      (first[0] + second[0]) / 2,
      (first[1] + second[1]) / 2,
      Math.hypot(first[0] - second[0], first[1] - second[1]),
    ];
  }

  /** @param {number} id @param {number} x @param {number} y */
  press(id, x, y) {
    if (!this.count) this.travelled = 0;
    // A third finger does nothing.
    if (this.count < 2) this.down.set(id, [x, y]);
    if (this.count > 1) this.travelled = Infinity;
  }

  /** @param {number} id @param {number} x @param {number} y @returns {Change | null} */
  move(id, x, y) {
    const before = this.down.get(id);
    if (!before) return null;
    const [left, top, apart] = this.measure();
    this.down.set(id, [x, y]);
    this.travelled += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    const [right, low, wide] = this.measure();
    return { dx: right - left, dy: low - top, factor: apart && wide ? wide / apart : 1, x: right, y: low };
  }

  /** @param {number} id @returns {boolean} whether it was the last one */
  lift(id) {
    return this.down.delete(id) && !this.count;
  }
}
