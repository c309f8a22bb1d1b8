// @ts-check
/** Dialogs: help and keys, files, people. */

import { ApiError, address, get, line, newId, post } from "./api.js";
import { apart, byId, counted, h, page, percent } from "./dom.js";
import { DEFAULT_KEYS, keyLabel, keyName, shortcut } from "./keys.js";
import { Chooser } from "./choose.js";
import { mapWords } from "./mapwords.js";
import { progressContent } from "./progress.js";
import { Review } from "./review.js";
import { say } from "./speech.js";

/** @typedef {import("./keys.js").Action} Action */
/** @typedef {import("./app.js").Studio} Studio */

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

/** @type {[string, string][]} */
const MENU = [
  ["progress", "Progress"],
  ["review", "Review"],
  ["export", "Export"],
  ["people", "People"],
  ["help", "Help"],
];

/** Of answers which row is better, those that differ. @type {Record<string, string>} */
const RANKED = {
  "answers.csv":
    "The answers as preferences, one pair in each line, the better row first; pairlens fit --pairs reads it",
  "model.pairlens": "A model that ranks new rows; pairlens transform reads it",
  "report.html": "A report on the ranking: the view, held-out preferences, features",
};

/** @type {[string, string][]} */
const FILES = [
  ["ranking.csv", "All rows in order, the best first, with the ranks that each may have"],
  ["answers.csv", "The answers as must-links and cannot-links, one pair in each line; pairlens fit --pairs reads it"],
  ["answers.jsonl", "The same as JSON lines, ids letter for letter"],
  ["groups.csv", "The group of every row, with its name and how sure it is"],
  ["map.csv", "The place of every row on the map"],
  ["model.pairlens", "A model for new rows; pairlens transform reads it"],
  ["report.html", "A report: the view beside PCA’s, held-out pairs, features"],
];

/** Milliseconds in which a reader has seen that the page behind a dialog has gone. */
const SETTLE = 300;

export class Panels {
  /** @param {Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.chooser = new Chooser(studio, this);
  }

  menu() {
    return MENU.filter(([name]) => name !== "people" || !line()).map(([name, words]) =>
      h("button", { type: "button", class: "quiet", "data-panel": name, onclick: () => this.open(name) }, words),
    );
  }

  /** @param {string} name */
  open(name) {
    if (page().querySelector("dialog[open]")) return;
    /** @type {Record<string, () => unknown>} */
    const known = {
      help: () => this.help(),
      progress: () => this.progress(),
      review: () => new Review(this.studio, this).start(),
      export: () => this.files(),
      people: () => this.people(),
    };
    known[name]?.();
  }

  /**
   * A dialog with a title; closed by Escape, its button, or what it offers.
   * @param {string} title
   * @param {...(Node | string | null)} content
   */
  dialog(title, ...content) {
    const close = h("button", { type: "button", class: "quiet close", "aria-label": "Close" }, "✕");
    const body = h("div", { class: "dialog-body" }, ...content);
    const heading = h("h2", { id: "dialog-title", tabindex: "-1" }, title);
    const dialog = /** @type {HTMLDialogElement} */ (
      h(
        "dialog",
        { "aria-labelledby": "dialog-title", tabindex: "-1" },
        h("div", { class: "dialog-head" }, heading, close),
        body,
        h("div", { class: "visually-hidden said", "aria-live": "polite" }),
      )
    );
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    byId("dialogs").replaceChildren(dialog);
    // Else the page, when it comes back, says again what it said last.
    byId("said").textContent = "";
    dialog.showModal();
    dialog.focus();
    // Orca reads the title, or lets letters through to a field, only if the focus comes there after the page has gone.
    setTimeout(() => {
      if (page().activeElement === dialog)
        /** @type {HTMLElement} */ (body.querySelector("[data-first]") ?? heading).focus();
    }, SETTLE);
    return dialog;
  }

  /** @param {Action} [changed] the action whose key was changed just now */
  help(changed) {
    const keys = this.studio.keys;
    const rows = /** @type {Action[]} */ (Object.keys(DEFAULT_KEYS)).map((action) => {
      const shown = h(
        "span",
        {},
        keys.chosen[action].map((key) => h("kbd", {}, keyLabel(key))),
      );
      const change = h(
        "button",
        {
          type: "button",
          class: "quiet",
          "data-key-of": action,
          "data-first": action === changed,
          "aria-label": `Change the key for: ${ACTIONS[action]}`,
        },
        "change",
      );
      change.addEventListener("click", () => this.takeKey(dialog, change, action));
      return h("tr", {}, h("th", { scope: "row" }, ACTIONS[action]), h("td", {}, shown), h("td", {}, change));
    });
    rows.push(
      h(
        "tr",
        {},
        h("th", { scope: "row" }, "Groups of a placement screen"),
        h("td", {}, h("kbd", {}, "1"), "–", h("kbd", {}, "8")),
        h("td", {}),
      ),
    );
    const dialog = this.dialog(
      "Keys and help",
      h(
        "p",
        {},
        `${this.studio.ranking ? "Say which of two rows is better" : "Say whether two rows belong together, or where a row belongs"}. “Can’t tell” is an answer too: the pair is not asked again. The map learns in the background and never keeps a question waiting. Every answer is stored at once, and can be changed below the question or in the review.`,
      ),
      h(
        "p",
        {},
        h(
          "button",
          {
            type: "button",
            class: "quiet outlined",
            onclick: () => {
              dialog.close();
              this.studio.practise();
            },
          },
          "Practise with three questions that do not count",
        ),
      ),
      h("table", { class: "keys" }, h("tbody", {}, rows)),
      h(
        "p",
        { class: "lead" },
        "With a screen reader: go to the answers by Tab and press Enter or Space, or the key of an answer. Each answer and the next question are read out. Above the answers, read on in browse mode.",
      ),
      this.columns(),
    );
  }

  /** What the map learns from, and what not, and how much each column counts. */
  columns() {
    const { columns, scale } = /** @type {{ columns: [string, string, boolean][], scale: string }} */ (
      this.studio.state.table
    );
    const items = columns.map(([name, words, used]) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, used ? words : `not learned from: ${words}`)),
    );
    return h(
      "details",
      { class: "columns" },
      h("summary", {}, "What the map learns from"),
      h("p", { class: "lead", "data-scale": true }, scale),
      columns.length
        ? h(
            "p",
            { class: "lead" },
            "Start the studio with --drop COLUMN to leave a column out, as one that holds the answer.",
          )
        : null,
      columns.length ? h("table", { class: "keys" }, h("tbody", {}, items)) : null,
    );
  }

  /** @param {HTMLDialogElement} dialog @param {HTMLElement} button @param {Action} action */
  takeKey(dialog, button, action) {
    // Readers let keys through to a field.
    const field = h("input", {
      type: "text",
      placeholder: "press a key …",
      "aria-label": `Press the new key for: ${ACTIONS[action]}`,
      autocomplete: "off",
    });
    button.replaceWith(field);
    field.focus();
    say(`Press the new key for: ${ACTIONS[action]}.`);
    const take = (/** @type {KeyboardEvent} */ event) => {
      if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      dialog.removeEventListener("keydown", take, true);
      const name = keyName(event);
      const taken = event.key !== "Escape" && event.key !== "Tab";
      if (taken) this.studio.assign(action, name);
      dialog.close();
      this.help(action);
      if (taken) say(`${ACTIONS[action]}: ${shortcut(name)}`);
    };
    dialog.addEventListener("keydown", take, true);
  }

  /** Fill a dialog with what the server knows. @param {string} title @param {() => Promise<(Node | string | null)[]>} make */
  async filled(title, make) {
    const dialog = this.dialog(title, h("p", { class: "lead" }, "One moment …"));
    const body = /** @type {HTMLElement} */ (dialog.querySelector(".dialog-body"));
    try {
      body.replaceChildren(...(await make()).filter((part) => part !== null).map((part) => part ?? ""));
    } catch (error) {
      body.replaceChildren(
        h("p", { class: "lead" }, `This is not there now: ${/** @type {ApiError} */ (error).message}.`),
      );
    }
    return dialog;
  }

  progress() {
    return this.filled("Progress", async () => progressContent(await get("progress"), this.studio));
  }

  files() {
    const early = (/** @type {string} */ name) => !this.studio.status.answers && /^(model|report)/.test(name);
    const { ranking } = this.studio;
    const there = FILES.filter(([name]) => name !== (ranking ? "groups.csv" : "ranking.csv"));
    const list = there
      .map(([name, usual]) => [name, ranking ? (RANKED[name] ?? usual) : usual])
      .map(([name, words]) =>
        h(
          "li",
          {},
          early(name) ? h("span", {}, name) : this.file(name),
          h("span", {}, early(name) ? `${words}. There is none before the first answer` : words),
        ),
      );
    return this.dialog(
      "Export",
      h(
        "p",
        { class: "lead" },
        "At any time, as often as you like. The model and the report are fitted first, which takes some seconds.",
      ),
      h("ul", { class: "files" }, list),
    );
  }

  /** @param {string} name */
  file(name) {
    const link = /** @type {HTMLAnchorElement} */ (h("a", { href: `/api/export/${name}`, download: name }, name));
    link.addEventListener("click", async (event) => {
      // What comes from a kernel has no address before it is there; then it is as if the link were pressed again.
      if (!line() || !event.isTrusted) return;
      event.preventDefault();
      try {
        link.href = await address(`export/${name}`);
        link.click();
      } catch (error) {
        this.toast(/** @type {ApiError} */ (error).message);
      }
    });
    return link;
  }

  people() {
    return this.filled("People", async () => {
      const { people, agreement, consistency } = await get("progress");
      const rows = Object.entries(people).map(([name, count]) =>
        h(
          "li",
          {},
          h("strong", {}, apart(name)),
          ` ${counted(Number(count), "answer")}${name === this.studio.state.annotator ? " (you)" : ""}`,
        ),
      );
      const input = /** @type {HTMLInputElement} */ (
        h("input", { type: "text", id: "person", maxlength: "80", autocomplete: "off" })
      );
      const result = h("p", { class: "new-link", role: "status" });
      const form = h(
        "form",
        {},
        h("label", { for: "person" }, "Invite somebody: their name"),
        input,
        h("button", { type: "submit", class: "main" }, "Make a link"),
        result,
      );
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        if (!input.value.trim()) return;
        try {
          const { name, url } = await post("link", { id: newId(), name: input.value });
          result.replaceChildren(`Link for ${apart(name)}: `, h("code", {}, url));
        } catch (error) {
          result.textContent = /** @type {ApiError} */ (error).message;
        }
      });
      return [
        rows.length ? h("ul", { class: "people" }, rows) : h("p", { class: "lead" }, "Nobody has answered yet."),
        agreement.n
          ? h(
              "p",
              {},
              `Of ${counted(agreement.n, "comparison")} that two people answered, ${percent(agreement.share)} agree${agreement.kappa === null ? "" : ` (kappa ${agreement.kappa.toFixed(2)})`}.`,
            )
          : h("p", { class: "lead" }, "One question in ten goes to a second person; their agreement is shown here."),
        consistency.n
          ? h(
              "p",
              {},
              `Of ${counted(consistency.n, "comparison")} that came back with sides swapped, ${percent(consistency.share)} were answered as before.`,
            )
          : null,
        form,
      ];
    });
  }

  map() {
    const { to, groups } = this.studio.map;
    return this.dialog("The map in words", ...mapWords(to, groups));
  }

  /** A short note that goes by itself. @param {string} text */
  toast(text) {
    const note = h("p", { class: "toast" }, text);
    byId("notes").append(note);
    say(text);
    setTimeout(() => note.remove(), 5000);
  }
}
