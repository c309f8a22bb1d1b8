// @ts-check
/** Above the map: find rows, show some of them, colour them by a column. */

import { get } from "./api.js";
import { counted, h } from "./dom.js";
import { PALETTE } from "./marks.js";
import { rampColour, spread } from "./paint.js";
import { say } from "./speech.js";

/** @typedef {import("./map.js").MapView} MapView */

const PAUSE = 250;
/** Sureness from which on a row is sure, of 255. */
const SURE = 229;

/** @type {[string, string][]} */
const SHOWN = [
  ["", "All rows"],
  ["unsure", "Rows that are not sure"],
  ["sure", "Rows that are sure"],
  ["placed", "Rows with an answer"],
];

export class MapTools {
  /**
   * @param {MapView} map
   * @param {object} options
   * @param {string[]} options.columns that the map can be coloured by
   * @param {boolean} options.groups whether there will be groups
   */
  constructor(map, { columns, groups }) {
    this.map = map;
    /** @type {Set<number> | null} */
    this.found = null;
    this.find = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "search",
        placeholder: "Find rows",
        "aria-label": "Find rows on the map",
        "data-find": true,
        autocomplete: "off",
      })
    );
    this.colour = /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": "Colour the map by", "data-colour": true },
        h("option", { value: "" }, groups ? "Coloured by group" : "One colour"),
        columns.map((name) => h("option", { value: name }, name)),
      )
    );
    this.show = /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": "Rows that are shown", "data-show": true },
        SHOWN.map(([value, words]) => h("option", { value }, words)),
      )
    );
    this.result = h("span", { class: "found", role: "status" });
    this.key = h("p", { class: "colour-key", hidden: true });
    this.root = h(
      "div",
      { class: "find-tools" },
      this.find,
      columns.length ? this.colour : null,
      groups ? this.show : null,
      this.result,
      this.key,
    );
    let timer = 0;
    this.find.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search(), PAUSE);
    });
    this.colour.addEventListener("change", () => this.paintBy(this.colour.value));
    this.show.addEventListener("change", () => this.filter());
  }

  async search() {
    const text = this.find.value.trim();
    const reply = text ? await get(`find?text=${encodeURIComponent(text)}`).catch(() => null) : null;
    if (this.find.value.trim() !== text) return;
    this.found = reply && new Set(reply.rows);
    this.result.textContent = reply ? `${counted(reply.found, "row")} found` : "";
    if (reply) say(this.result.textContent);
    this.map.point(reply && reply.rows.length <= 50 ? reply.rows : []);
    this.filter();
  }

  filter() {
    const { map, found } = this;
    const kind = this.show.value;
    const test = (/** @type {number} */ row) => {
      if (found && !found.has(row)) return false;
      if (kind === "placed") return map.groupOf.has(row);
      const sure = map.groupOf.has(row) || (map.certain?.numbers[row] && map.certain.sure[row] >= SURE);
      return kind === "" || (kind === "sure" ? Boolean(sure) : !sure);
    };
    map.wanted = found || kind ? test : null;
    map.paint();
  }

  /** @param {string} name */
  async paintBy(name) {
    const column = name ? await get(`column?name=${encodeURIComponent(name)}`).catch(() => null) : null;
    if (this.colour.value !== name) return;
    this.map.column = column;
    this.map.paint();
    const dot = (/** @type {number[]} */ colour) => {
      const mark = h("i", { class: "dot", "aria-hidden": "true" });
      mark.style.background = `rgb(${colour.join(" ")})`;
      return mark;
    };
    this.key.hidden = !column;
    if (column?.numbers) {
      const [low, high] = spread(column.numbers);
      this.key.replaceChildren(
        `${low.toPrecision(3)} `,
        ...[0, 0.25, 0.5, 0.75, 1].map((share) => dot(rampColour(share))),
        ` ${high.toPrecision(3)}`,
      );
    } else if (column) {
      const palette = this.map.dark.matches ? PALETTE.dark : PALETTE.light;
      this.key.replaceChildren(
        ...column.names.flatMap((/** @type {string} */ word, /** @type {number} */ k) => [
          dot(palette[k % palette.length]),
          ` ${word} `,
        ]),
      );
    }
  }
}
