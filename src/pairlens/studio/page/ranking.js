// @ts-check
/** The ranking so far, the best row first: each with the ranks that it may have. */

import { get } from "./api.js";
import { append, counted, h, percent } from "./dom.js";

/** @typedef {import("./rowview.js").Row & {rank: number, low: number, high: number}} Ranked */

const PAGE = 40;
const PAUSE = 250;

/** Where an interval of ranks lies between the first and the last, in percent. @param {{low: number, high: number}} ranks @param {number} rows @returns {[number, number]} */
export function bar({ low, high }, rows) {
  const step = 100 / Math.max(1, rows);
  return [(low - 1) * step, Math.max(step, (high - low + 1) * step)];
}

/** How sure the order is, in words. @param {number} share @param {number} answers */
export function orderWords(share, answers) {
  if (!answers) return "No answer yet: this order means nothing.";
  return `Of all pairs of rows, the order of ${percent(share)} is sure.`;
}

export class RankingView {
  /**
   * @param {object} options
   * @param {(row: Ranked) => HTMLElement} options.thumbnail
   * @param {(rows: number[]) => void} options.point
   */
  constructor({ thumbnail, point }) {
    this.thumbnail = thumbnail;
    this.point = point;
    this.length = PAGE;
    this.words = h("p", { class: "map-words" });
    this.find = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "search",
        placeholder: "Find rows",
        "aria-label": "Find rows in the ranking",
        autocomplete: "off",
      })
    );
    this.list = h("ol", {
      class: "ranked",
      "data-testid": "ranking",
      "aria-label": "Rows, the best first",
      tabindex: "0",
    });
    this.more = h("button", { type: "button", class: "quiet outlined", hidden: true }, "Show more");
    this.root = h("div", { class: "ranking" }, this.words, this.find, this.list, this.more);
    this.more.addEventListener("click", () => {
      this.length += PAGE;
      this.load();
    });
    let timer = 0;
    this.find.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.load(), PAUSE);
    });
  }

  /** Stand in for the map, which is behind a button. @param {HTMLElement} map */
  cover(map) {
    const button = h("button", { type: "button", class: "quiet outlined", "data-map": true }, "Map");
    button.addEventListener("click", () => {
      button.textContent = map.classList.toggle("ranks-rows") ? "Map" : "Ranking";
    });
    map.classList.add("ranks-rows");
    map.append(h("div", { class: "ranking-head" }, h("h2", {}, "Ranking"), button), this.root);
  }

  async load() {
    const find = encodeURIComponent(this.find.value.trim());
    const parts = [];
    for (let start = 0; start < this.length; start += PAGE)
      parts.push(get(`ranking?start=${start}&most=${PAGE}&find=${find}`));
    const replies = await Promise.all(parts).catch(() => null);
    if (!replies) return;
    const { rows, found, share_sure, answers } = replies[0];
    this.words.textContent = `${counted(rows, "row")}. ${orderWords(share_sure, answers)} The bar shows the ranks that a row may have (${percent(0.9)}).`;
    this.more.hidden = found <= this.length;
    const top = this.list.scrollTop;
    this.list.replaceChildren();
    append(
      this.list,
      replies.flatMap((reply) => reply.ranked).map((/** @type {Ranked} */ row) => this.item(row, rows)),
    );
    this.list.scrollTop = top;
  }

  /** @param {Ranked} row @param {number} rows */
  item(row, rows) {
    const [left, width] = bar(row, rows);
    const range = h("span", { class: "ranks", title: `Between ${row.low} and ${row.high} of ${rows}` }, h("i", {}));
    /** @type {HTMLElement} */ (range.firstElementChild).style.left = `${left}%`;
    /** @type {HTMLElement} */ (range.firstElementChild).style.width = `${width}%`;
    const item = h(
      "li",
      { "data-rank": row.rank, "data-ranked": row.row },
      h("b", {}, row.rank),
      h("div", { class: "ranked-row" }, this.thumbnail(row)),
      h("div", { class: "ranked-range" }, range, h("small", {}, `${row.low}–${row.high}`)),
    );
    item.addEventListener("mouseenter", () => this.point([row.row]));
    item.addEventListener("mouseleave", () => this.point([]));
    return item;
  }
}
