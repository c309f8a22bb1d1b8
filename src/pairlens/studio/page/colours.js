// @ts-check
/** Colours of groups: told apart by most eyes, in light and in dark; after ten they come again, and names tell them apart. */

/** @type {[number, number, number][]} */
export const PALETTE = [
  [47, 125, 116],
  [217, 115, 63],
  [92, 107, 192],
  [192, 80, 120],
  [140, 160, 50],
  [70, 150, 200],
  [165, 115, 80],
  [150, 90, 170],
  [210, 160, 40],
  [90, 130, 90],
];

/** Gives each group a colour that stays with its number, whichever groups come and go. */
export class Colours {
  constructor() {
    /** @type {Map<number, number>} */
    this.given = new Map();
  }

  /**
   * Find colours for new groups: that of the number, or one that fewer groups have.
   * @param {number[]} numbers of all groups that are shown
   */
  give(numbers) {
    const uses = PALETTE.map((_, k) => numbers.filter((number) => this.given.get(number) === k).length);
    for (const number of numbers) {
      if (this.given.has(number)) continue;
      const own = (number - 1) % PALETTE.length;
      const fewest = Math.min(...uses);
      const chosen = uses[own] === fewest ? own : uses.indexOf(fewest);
      this.given.set(number, chosen);
      uses[chosen] += 1;
    }
  }

  /** @param {number} number of a group that has one @returns {[number, number, number]} */
  of(number) {
    return PALETTE[this.given.get(number) ?? 0];
  }
}
