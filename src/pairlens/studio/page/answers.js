// @ts-check
/** All answers: searched, filtered, and each of them changed. */

import { get, newId } from "./api.js";
import { apart, counted, h } from "./dom.js";
import { inWords, whichRows } from "./strip.js";

/** @typedef {import("./strip.js").Past & {annotator: string, at: string, kept: boolean}} Listed */

const PAGE = 15;
const PAUSE = 250;

/** @type {[string, string][]} */
const FILTERS = [
  ["", "All answers"],
  ["contradiction", "In a contradiction"],
  ["flagged", "Flagged"],
  ["changed", "Changed"],
  ["people", "By people"],
  ["machines", "By machines"],
];
/** @type {Record<string, [string, string][]>} */
const KINDS = {
  group: [
    ["same", "Same"],
    ["different", "Different"],
    ["placed", "Placed in a group"],
    ["none", "None of these"],
    ["unsure", "Can’t tell"],
  ],
  prefer: [
    ["left", "Left"],
    ["right", "Right"],
    ["equal", "Equally good"],
    ["unsure", "Can’t tell"],
  ],
};

export class AnswerList {
  /** @param {import("./app.js").Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.length = PAGE;
    this.loads = 0;
    this.find = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "search",
        placeholder: "Find by row or person",
        "aria-label": "Find answers by row or person",
        "data-find-answers": true,
        autocomplete: "off",
      })
    );
    this.show = /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": "Answers that are shown", "data-show-answers": true },
        [...FILTERS, ...KINDS[studio.ranking ? "prefer" : "group"]].map(([value, words]) =>
          h("option", { value }, words),
        ),
      )
    );
    this.count = h("p", { class: "quiet-words", role: "status" });
    this.list = h("ul", { class: "all-answers" });
    this.more = h("button", { type: "button", class: "quiet outlined", hidden: true }, "Show more");
    this.root = h(
      "section",
      { class: "answer-list", "aria-label": "All answers" },
      h("p", { class: "with-group" }, this.find, this.show),
      this.count,
      this.list,
      this.more,
    );
    let timer = 0;
    const again = () => {
      this.length = PAGE;
      this.load();
    };
    this.find.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(again, PAUSE);
    });
    this.show.addEventListener("change", again);
    this.more.addEventListener("click", () => {
      this.length += PAGE;
      this.load();
    });
  }

  async load() {
    const query = `find=${encodeURIComponent(this.find.value.trim())}&show=${this.show.value}`;
    const pages = Array.from({ length: this.length / PAGE }, (_, k) =>
      get(`answers?${query}&start=${k * PAGE}&most=${PAGE}`),
    );
    const loading = ++this.loads;
    const replies = await Promise.all(pages).catch(() => null);
    // What was asked for later is shown, whichever reply comes first.
    if (!replies || loading !== this.loads) return;
    const answers = /** @type {Listed[]} */ (replies.flatMap((reply) => reply.answers));
    this.count.textContent = `${counted(replies[0].found, "answer")}, the newest first.`;
    this.more.hidden = replies[0].found <= this.length;
    this.list.replaceChildren(...answers.map((answer) => this.item(answer)));
  }

  /** @param {Listed} answer */
  item(answer) {
    const chosen = /^\d+$/.test(answer.answer) ? Number(answer.answer) : 1;
    const shown = answer.kind === "place" ? [answer.rows[0], answer.rows[chosen]] : answer.rows;
    const change = /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": `Answer about ${whichRows(answer, " and ")}`, "data-change-of": answer.id },
        answer.answers.map((each) =>
          h("option", { value: each, selected: each === answer.answer }, inWords({ ...answer, answer: each })),
        ),
      )
    );
    change.addEventListener("change", () => this.act(answer, change.value));
    const marks = [answer.flagged ? "flagged" : "", answer.changed ? "changed" : "", answer.kept ? "kept" : ""]
      .filter(Boolean)
      .join(", ");
    const who = `${apart(answer.annotator)}, ${answer.at.slice(0, 16).replace("T", " ")}${marks ? `, ${marks}` : ""}`;
    return h(
      "li",
      { "data-answer-id": answer.id },
      this.studio.thumbnails(shown),
      h("div", { class: "answer-words" }, h("strong", {}, whichRows(answer)), change, h("small", {}, who)),
      h("button", { type: "button", class: "quiet outlined", onclick: () => this.act(answer, null) }, "Take back"),
    );
  }

  /** Change an answer, or take it back; those of others as in a review. @param {Listed} answer @param {string | null} now */
  async act(answer, now) {
    const id = newId();
    const own = answer.annotator === this.studio.state.annotator;
    if (own)
      await this.studio.outbox.put(now === null ? "retract" : "change", {
        id,
        target: answer.id,
        ...(now === null ? {} : { answer: now }),
      });
    else
      await this.studio.outbox.put("review", {
        id,
        target: answer.id,
        outcome: now === null ? "retract" : "flip",
        answer: now ?? "",
      });
    this.load();
  }
}
