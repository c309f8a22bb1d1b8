// @ts-check
/** Dialogs: help and keys, names of groups, what was drawn round. */

import { newId } from "./api.js";
import { byId, counted, h } from "./dom.js";
import { DEFAULT_KEYS, keyLabel, keyName } from "./keys.js";

/** @type {Record<string, string>} */
const ACTIONS = {
  same: "Same",
  different: "Different",
  unsure: "Can’t tell",
  undo: "Undo the last answer",
  left: "The left one is better",
  right: "The right one is better",
  equal: "Equally good",
  none: "None of these groups",
  flag: "Flag the last answer",
  review: "Review",
  map: "To the map",
  help: "This help",
};

export class Panels {
  /** @param {any} studio */
  constructor(studio) {
    this.studio = studio;
    this.practising = false;
  }

  menu() {
    return [["help", "Keys and help"]].map(([name, words]) =>
      h("button", { type: "button", class: "quiet", "data-panel": name, onclick: () => this.open(name) }, words),
    );
  }

  /** @param {string} name */
  open(name) {
    if (name === "help") this.help();
  }

  /**
   * A dialog with a title; closed by Escape, its button, or what it offers.
   * @param {string} title
   * @param {...(Node | string | null)} content
   */
  dialog(title, ...content) {
    const close = h("button", { type: "button", class: "quiet close", "aria-label": "Close" }, "✕");
    const heading = h("h2", { id: "dialog-title" }, title);
    const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "dialog-title" }, h("div", { class: "dialog-head" }, heading, close), h("div", { class: "dialog-body" }, ...content)));
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    byId("dialogs").replaceChildren(dialog);
    dialog.showModal();
    return dialog;
  }

  help() {
    const keys = this.studio.keys;
    const rows = /** @type {[import("./keys.js").Action, string[]][]} */ (Object.entries(DEFAULT_KEYS)).map(([action]) => {
      const shown = h("span", {}, keys.chosen[action].map((/** @type {string} */ key) => h("kbd", {}, keyLabel(key))));
      const change = h("button", { type: "button", class: "quiet", "aria-label": `Change the key for: ${ACTIONS[action]}` }, "change");
      change.addEventListener("click", () => {
        change.textContent = "press a key …";
        const take = (/** @type {KeyboardEvent} */ event) => {
          if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
          event.preventDefault();
          event.stopPropagation();
          dialog.removeEventListener("keydown", take, true);
          if (event.key !== "Escape" && event.key !== "Tab") this.studio.assign(action, keyName(event));
          dialog.close();
          this.help();
        };
        dialog.addEventListener("keydown", take, true);
      });
      return h("tr", {}, h("th", { scope: "row" }, ACTIONS[action]), h("td", {}, shown), h("td", {}, change));
    });
    rows.push(h("tr", {}, h("th", { scope: "row" }, "Groups of a placement screen"), h("td", {}, h("kbd", {}, "1"), "–", h("kbd", {}, "8")), h("td", {})));
    const dialog = this.dialog(
      "Keys and help",
      h("p", {}, "Say whether two rows belong together. “Can’t tell” is an answer too: the pair is not asked again. The map learns in the background and never keeps a question waiting; every answer is stored at once and can be changed below the question."),
      h("table", { class: "keys" }, h("tbody", {}, rows)),
    );
  }

  /** @param {import("./map.js").Group} group */
  rename(group) {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "text", maxlength: "80", id: "group-name", value: group.name, autocomplete: "off" }));
    const form = h("form", { method: "dialog" }, h("label", { for: "group-name" }, `Name of group ${group.number} (${counted(group.rows.length, "row")})`), input, h("button", { type: "submit", class: "main" }, "Save"));
    const dialog = this.dialog("Name a group", form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.studio.outbox.put("name", { id: newId(), group: group.number, name: input.value });
      dialog.close();
    });
    input.select();
  }

  /** @param {number[]} rows */
  selection(rows) {
    if (!rows.length) return;
    this.dialog(counted(rows.length, "row") + " selected", h("p", {}, rows.slice(0, 200).join(", ")));
  }

  /** A short note that goes by itself. @param {string} text */
  toast(text) {
    const note = h("p", { class: "toast", role: "status" }, text);
    document.body.append(note);
    setTimeout(() => note.remove(), 5000);
  }

  /** @param {any} question @param {string} answer */
  practised(question, answer) {
    void [question, answer];
  }
}
