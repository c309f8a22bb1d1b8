// @ts-check
/** Below the map: the groups, each with its mark, name and size; pressing one names it. */

import { append, h, page } from "./dom.js";
import { markPicture } from "./marks.js";

/** @typedef {{number: number, shown: number, name: string, rows: number[], confidence: number[]}} Group */

/** Groups that are listed at once; more are behind a button. */
export const FEW = 12;

/** What a group is called. @param {{name: string, shown: number}} group */
export function groupName(group) {
  return group.name || `Group ${group.shown}`;
}

export class Legend {
  /** @param {(group: Group) => void} rename */
  constructor(rename) {
    this.rename = rename;
    this.open = false;
    /** @type {Group[]} */
    this.groups = [];
    this.hint = h("p", { class: "legend-hint", hidden: true }, "Press a group to name, merge or split it.");
    this.list = h("div", { class: "legend", role: "group", "aria-label": "Groups" });
    this.more = h("button", { type: "button", class: "quiet outlined more", "aria-expanded": "false" });
    this.more.addEventListener("click", () => {
      this.open = !this.open;
      this.show(this.groups);
    });
    this.root = h("div", { class: "legend-block", hidden: true }, this.hint, this.list);
  }

  /** @param {Group[]} groups */
  show(groups) {
    const focused = page().activeElement;
    const held = focused instanceof HTMLElement && this.list.contains(focused) ? focused.dataset.group : undefined;
    this.groups = groups;
    this.root.hidden = !groups.length;
    this.hint.hidden = groups.some((group) => group.name);
    const many = groups.length > FEW;
    this.list.replaceChildren();
    append(
      this.list,
      (many && !this.open ? groups.slice(0, FEW) : groups).map((group) => this.item(group)),
    );
    this.more.textContent = this.open ? "Show fewer" : `Show all ${groups.length} groups`;
    this.more.setAttribute("aria-expanded", String(this.open));
    if (many) this.list.append(this.more);
    // The list is made anew with every answer; whoever goes through it by keys stays where they are.
    if (held !== undefined)
      /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-group="${held}"]`))?.focus();
    else if (focused === this.more) this.more.focus();
  }

  /** @param {Group} group */
  item(group) {
    const size = h(
      "small",
      {},
      h("span", { class: "visually-hidden" }, ","),
      ` ${group.rows.length}`,
      h("span", { class: "visually-hidden" }, group.rows.length === 1 ? " row" : " rows"),
    );
    const words = h("span", { class: "group-name" }, groupName(group));
    return h(
      "button",
      {
        type: "button",
        class: "group",
        "data-group": group.number,
        title: "Name, merge or split this group",
        onclick: () => this.rename(group),
      },
      markPicture(group.shown),
      words,
      size,
    );
  }
}
