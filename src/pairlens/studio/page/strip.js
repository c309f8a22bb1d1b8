// @ts-check
/** Below the question: the last answers, each of which can be changed or taken back. */

import { apart, counted, h, page } from "./dom.js";
import { WORDS } from "./question.js";

/**
 * @typedef {object} Past
 * @property {string} id
 * @property {string} kind
 * @property {number[]} rows
 * @property {string[]} ids
 * @property {string} answer
 * @property {string[]} answers
 * @property {boolean} changed
 * @property {boolean} flagged
 */

/** Width up to which the page is stacked, as in the style sheet. */
const STACKED = 900;

/** What was done with rows on the map. @type {Record<string, string>} */
const DONE = {
  together: "belong together",
  group: "one group",
  apart: "not with a group",
  split: "split off",
  merge: "two groups are one",
};

/** An answer in words. @param {Pick<Past, "answer" | "ids">} past */
export function inWords(past) {
  if (past.answer in DONE) return DONE[past.answer];
  if (/^\d+$/.test(past.answer)) return `with ${apart(past.ids[Number(past.answer)] ?? past.answer)}`;
  if (past.answer === "left" || past.answer === "right")
    return `${apart(past.ids[past.answer === "left" ? 0 : 1])} is better`;
  return (WORDS[past.answer] ?? past.answer).toLowerCase();
}

/** The rows of an answer in words. @param {Past} past @param {string} [between] */
export function whichRows(past, between = " · ") {
  if (past.kind === "chosen" && past.ids.length > 2) return counted(past.ids.length, "row");
  return past.kind === "place" ? apart(past.ids[0]) : past.ids.map(apart).join(between);
}

export class Strip {
  /**
   * @param {HTMLElement} root
   * @param {object} options
   * @param {(past: Past, answer: string) => void} options.change
   * @param {(past: Past) => void} options.retract
   * @param {(past: Past) => void} options.flag
   * @param {(rows: number[]) => void} options.point
   */
  constructor(root, { change, retract, flag, point }) {
    this.list = h("ol", { class: "past", "aria-label": "Your last answers, newest first" });
    this.words = h("p", { class: "progress-words" });
    this.empty = h(
      "p",
      { class: "quiet-words" },
      "Your last ten answers appear here. Click one to change it or take it back.",
    );
    this.root = root;
    root.replaceChildren(this.words, this.empty, this.list);
    this.handlers = { change, retract, flag, point };
    /** @type {Past[]} */
    this.pasts = [];
    page().addEventListener("click", (event) => {
      if (!(event.target instanceof Element) || !event.target.closest(".past")) this.close();
    });
  }

  /** @param {Past[]} pasts */
  show(pasts) {
    this.pasts = pasts;
    this.empty.hidden = pasts.length > 0;
    this.list.hidden = !pasts.length;
    const chips = () => /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll(".chip")]);
    const at = [...this.list.children].findIndex((item) => item.contains(page().activeElement));
    const held = chips()[at]?.dataset.event;
    this.list.replaceChildren(...pasts.map((past) => this.item(past)));
    // Whoever goes through the list by keys stays there; an answer that is gone leaves them at its neighbour.
    if (at >= 0)
      (chips().find((chip) => chip.dataset.event === held) ?? chips()[Math.min(at, pasts.length - 1)])?.focus();
  }

  /** @param {Past} past */
  item(past) {
    const mark =
      past.answer === "same" || past.answer === "together" || /^\d+$/.test(past.answer)
        ? "same"
        : past.answer === "different" || past.answer === "none"
          ? "different"
          : "other";
    // What is written on it comes first, so that it can be called by that; a title alone would be read after it, twice.
    const label = `${inWords(past)}${past.changed ? " (changed)" : ""} ${whichRows(past)}${past.flagged ? ", flagged" : ""}`;
    const button = h(
      "button",
      {
        type: "button",
        class: `chip ${mark}`,
        "data-event": past.id,
        "aria-expanded": "false",
        "aria-label": label,
        title: label,
      },
      h(
        "span",
        { class: "chip-answer" },
        inWords(past),
        past.flagged ? " ⚑" : "",
        past.changed ? h("small", {}, " (changed)") : null,
      ),
      " ",
      h("span", { class: "chip-rows" }, whichRows(past)),
    );
    const item = h("li", {}, button);
    button.addEventListener("click", () => this.toggle(item, button, past));
    button.addEventListener("mouseenter", () => this.handlers.point(past.rows));
    button.addEventListener("mouseleave", () => this.handlers.point([]));
    return item;
  }

  /** @param {HTMLElement} item @param {HTMLElement} button @param {Past} past */
  toggle(item, button, past) {
    const open = button.getAttribute("aria-expanded") === "true";
    this.close();
    if (open) return;
    button.setAttribute("aria-expanded", "true");
    const others = past.answers.filter((answer) => answer !== past.answer);
    const choice = (
      /** @type {string} */ words,
      /** @type {() => void} */ run,
      /** @type {Record<string, string>} */ data = {},
    ) =>
      h(
        "button",
        {
          type: "button",
          class: "choice",
          ...data,
          onclick: () => {
            this.close();
            button.focus();
            run();
          },
        },
        words,
      );
    const menu = h(
      "div",
      { class: "choices", role: "group", "aria-label": "Change this answer" },
      h("p", {}, whichRows(past), h("br"), h("strong", {}, inWords(past))),
      others.map((answer) =>
        choice(`Change to ${inWords({ ...past, answer })}`, () => this.handlers.change(past, answer), {
          "data-change": answer,
        }),
      ),
      choice("Take it back", () => this.handlers.retract(past), { "data-retract": past.id }),
      past.kind === "chosen"
        ? null
        : choice(past.flagged ? "Remove the flag" : "Flag it", () => this.handlers.flag(past), {
            "data-flag": past.id,
          }),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.close();
      button.focus();
    });
    item.append(menu);
    // Above its answer, and never beyond the edge; a narrow screen has a place of its own for it.
    const box = this.root.getBoundingClientRect();
    if (innerWidth > STACKED)
      menu.style.left = `${Math.max(12, Math.min(button.getBoundingClientRect().left - box.left, box.width - menu.offsetWidth - 12))}px`;
    /** @type {HTMLElement | null} */ (menu.querySelector(".choice"))?.focus();
  }

  close() {
    for (const menu of this.list.querySelectorAll(".choices")) menu.remove();
    for (const button of this.list.querySelectorAll("[aria-expanded=true]"))
      button.setAttribute("aria-expanded", "false");
  }

  /** @param {string} words */
  progress(words) {
    this.words.textContent = words;
  }
}
