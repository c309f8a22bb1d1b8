// @ts-check
/** A second look: the question again, blind; then both answers, and the person decides. */

import { get, newId } from "./api.js";
import { apart, append, counted, h } from "./dom.js";
import { QuestionView } from "./question.js";
import { say } from "./speech.js";
import { inWords, whichRows } from "./strip.js";

/** @typedef {import("./strip.js").Past} Past */
/** @typedef {import("./question.js").Question} Question */
/** @typedef {{kind: string, question: Question, answer: Past, annotator: string, others: (Past & {annotator: string})[], chain: string[], rows: number[]}} Doubt */

/** Rows that are shown with the decision. */
const SHOWN = 12;

/** @type {Record<string, string>} */
const REASONS = {
  contradiction: "This answer and others contradict each other.",
  suspicious: "This answer does not fit the groups that the other answers make.",
  flagged: "You flagged this answer.",
};

export class Review {
  /** @param {import("./app.js").Studio} studio @param {import("./panels.js").Panels} panels */
  constructor(studio, panels) {
    this.studio = studio;
    this.panels = panels;
    /** @type {Doubt[]} */
    this.doubts = [];
    this.at = 0;
  }

  async start() {
    this.dialog = await this.panels.filled("Review", async () => {
      this.doubts = await get("doubts");
      return [];
    });
    this.dialog.dataset.testid = "review";
    this.body = /** @type {HTMLElement} */ (this.dialog.querySelector(".dialog-body"));
    if (!this.body.childElementCount) this.ask();
  }

  get doubt() {
    return this.doubts[this.at];
  }

  /** The question again, without the answer it had. */
  ask() {
    if (!this.body) return;
    if (this.at >= this.doubts.length) {
      const end = this.doubts.length ? "That was all. Thank you." : "Nothing stands out: no answer contradicts another, and none looks wrong.";
      this.body.replaceChildren(h("p", { class: "lead" }, end));
      this.dialog?.querySelector("h2")?.focus();
      say(end);
      return;
    }
    const place = h("p", { class: "lead" }, `${this.at + 1} of ${counted(this.doubts.length, "answer")} worth a second look. Answer as if for the first time; what was answered before is shown afterwards.`);
    const box = h("section", { class: "ask again", "aria-label": "The question again", tabindex: "-1" });
    this.body.replaceChildren(place, box);
    box.focus({ preventScroll: true });
    say(place.textContent ?? "");
    const view = new QuestionView(box, { keys: this.studio.keys, scale: this.studio.state.table.line, answer: (answer) => this.compare(answer) });
    view.show({ ...this.doubt.question, id: `review-${this.doubt.answer.id}` });
    this.view = view;
    this.dialog?.addEventListener("keydown", this.key);
  }

  key = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === " " && target.closest("button")) return;
    const meaning = this.studio.keys.meaning(event, this.view?.age ?? 0);
    if (meaning && this.view?.press(meaning.group ?? meaning.action)) event.preventDefault();
  };

  /** Both answers, and what to do. @param {string} now */
  compare(now) {
    const { answer, kind, others, chain, rows, annotator } = this.doubt;
    this.dialog?.removeEventListener("keydown", this.key);
    const again = { ...answer, answer: now };
    const who = annotator === this.studio.state.annotator ? "You answered" : `${apart(annotator)} answered`;
    const decide = (/** @type {string} */ outcome, /** @type {string} */ words) =>
      h("button", { type: "button", class: "choice", "data-outcome": outcome, onclick: () => this.decide(outcome, now) }, words);
    const same = now === answer.answer;
    this.body?.replaceChildren(
      h("p", {}, h("strong", {}, whichRows(answer))),
      h("dl", { class: "both" }, h("dt", {}, `${who} before`), h("dd", {}, inWords(answer)), h("dt", {}, "You answer now"), h("dd", {}, inWords(again))),
      h("p", {}, REASONS[kind] ?? ""),
      ...(chain.length > 2 ? [h("p", { class: "chain" }, "The chain: ", chain.map(apart).join(" → "))] : []),
      ...(others.length ? [h("ul", {}, others.map((other) => h("li", {}, `${whichRows(other)}: ${inWords(other)} (${apart(other.annotator)})`)))] : []),
      h("div", { class: "choices-row", role: "group", "aria-label": "Decide" }, decide("keep", `Keep: ${inWords(answer)}`), same ? null : decide("flip", `Change to: ${inWords(again)}`), decide("retract", "Take the answer back"), h("button", { type: "button", class: "quiet", onclick: () => this.next() }, "Decide later")),
      this.gallery(rows.slice(0, SHOWN)),
    );
    say(`${who} before: ${inWords(answer)}. You answer now: ${inWords(again)}. ${REASONS[kind] ?? ""}`);
    /** @type {HTMLElement | null | undefined} */ (this.body?.querySelector(".choice"))?.focus();
  }

  /** The rows that the decision is about, below it: they come a moment later. @param {number[]} rows */
  gallery(rows) {
    const gallery = h("div", { class: "gallery" });
    get(`rows?rows=${rows.join(",")}`)
      .then((shown) => append(gallery, shown.map((/** @type {import("./rowview.js").Row} */ row) => this.studio.thumbnail(row))))
      .catch(() => undefined);
    return gallery;
  }

  /** @param {string} outcome @param {string} now */
  async decide(outcome, now) {
    await this.studio.outbox.put("review", { id: newId(), target: this.doubt.answer.id, outcome, answer: now });
    this.next();
  }

  next() {
    this.at += 1;
    this.ask();
  }
}
