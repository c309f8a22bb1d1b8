// @ts-check
/** A second look: the question again, blind; then both answers, and the person decides. */

import { get, newId } from "./api.js";
import { AnswerList } from "./answers.js";
import { apart, counted, h } from "./dom.js";
import { QuestionView } from "./question.js";
import { say } from "./speech.js";
import { inWords, whichRows } from "./strip.js";

/** @typedef {import("./strip.js").Past} Past */
/** @typedef {import("./question.js").Question} Question */
/** @typedef {{kind: string, question: Question, answer: Past, annotator: string, links: Link[], chain: number[], conflicts: number, rows: number[]}} Doubt */
/** @typedef {{rows: [number, number], same: boolean, asked: boolean, annotator: string}} Link */

/** Rows that are shown with the decision. */
const SHOWN = 12;

/** @type {Record<string, string>} */
const REASONS = {
  contradiction:
    "These answers cannot all be right. Of all of them, the one asked again is most probably the wrong one.",
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
    /** Contradictions there are, and those of which every answer was kept. */
    this.conflicts = 0;
    this.kept = 0;
    this.decided = 0;
    /** @type {Set<string>} answers that are left for later */
    this.later = new Set();
  }

  async start() {
    this.dialog = await this.panels.filled("Review", async () => []);
    this.dialog.dataset.testid = "review";
    const body = /** @type {HTMLElement} */ (this.dialog.querySelector(".dialog-body"));
    this.body = h("div", { class: "review-body" });
    const list = new AnswerList(this.studio);
    const show = h(
      "button",
      { type: "button", class: "quiet outlined", "data-all-answers": true, "aria-expanded": "false" },
      "All answers",
    );
    show.addEventListener("click", () => {
      const open = show.getAttribute("aria-expanded") !== "true";
      show.setAttribute("aria-expanded", String(open));
      show.textContent = open ? "Back to the second look" : "All answers";
      this.body?.toggleAttribute("hidden", open);
      list.root.toggleAttribute("hidden", !open);
      if (open) list.load();
      else this.load();
    });
    list.root.hidden = true;
    body.replaceChildren(h("p", {}, show), this.body, list.root);
    await this.load();
  }

  async load() {
    this.body?.replaceChildren(h("p", { class: "lead" }, "One moment …"));
    try {
      const { doubts, conflicts, kept } = await get("doubts");
      this.doubts = doubts.filter((/** @type {Doubt} */ doubt) => !this.later.has(doubt.answer.id));
      this.conflicts = conflicts;
      this.kept = kept;
    } catch (error) {
      this.body?.replaceChildren(
        h("p", { class: "lead" }, `This is not there now: ${/** @type {Error} */ (error).message}.`),
      );
      return;
    }
    this.ask();
  }

  get doubt() {
    return this.doubts[0];
  }

  /** What remains, when nothing is left to be asked again. */
  remaining() {
    if (this.conflicts > 0) {
      const why = this.kept === this.conflicts ? "You kept every answer of it" : "Some were left for later";
      return `${counted(this.conflicts, "contradiction")} ${this.conflicts === 1 ? "remains" : "remain"}. ${this.conflicts > 1 && this.kept === this.conflicts ? "You kept every answer of them" : why}; pairlens pairs check names ${this.conflicts === 1 ? "it" : "them"} in answers.csv.`;
    }
    if (this.decided) return "That was all. No answer contradicts another.";
    return "Nothing stands out: no answer contradicts another, and none looks wrong.";
  }

  /** The question again, without the answer it had. */
  ask() {
    if (!this.body) return;
    if (!this.doubts.length) {
      const end = this.remaining();
      this.body.replaceChildren(h("p", { class: "lead", "data-testid": "remaining" }, end));
      this.dialog?.querySelector("h2")?.focus();
      say(end);
      return;
    }
    const most = this.conflicts ? ` ${counted(this.conflicts, "contradiction")} in all.` : "";
    const place = h(
      "p",
      { class: "lead" },
      `${counted(this.doubts.length, "answer")} worth a second look.${most} Answer as if for the first time; what was answered before is shown afterwards.`,
    );
    const box = h("section", { class: "ask again", "aria-label": "The question again", tabindex: "-1" });
    this.body.replaceChildren(place, box);
    box.focus({ preventScroll: true });
    say(place.textContent ?? "");
    const { line: scale, typical } = this.studio.state.table;
    const view = new QuestionView(box, {
      keys: this.studio.keys,
      scale,
      typical,
      answer: (answer) => this.compare(answer),
    });
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
    const { answer, kind, links, chain, rows, annotator, conflicts } = this.doubt;
    this.dialog?.removeEventListener("keydown", this.key);
    const again = { ...answer, answer: now };
    const who = annotator === this.studio.state.annotator ? "You answered" : `${apart(annotator)} answered`;
    const decide = (/** @type {string} */ outcome, /** @type {string} */ words) =>
      h(
        "button",
        { type: "button", class: "choice", "data-outcome": outcome, onclick: () => this.decide(outcome, now) },
        words,
      );
    const same = now === answer.answer;
    this.body?.replaceChildren(
      h("p", {}, h("strong", {}, whichRows(answer))),
      h(
        "dl",
        { class: "both" },
        h("dt", {}, `${who} before`),
        h("dd", {}, inWords(answer)),
        h("dt", {}, "You answer now"),
        h("dd", {}, inWords(again)),
      ),
      h("p", {}, REASONS[kind] ?? ""),
      conflicts > 1 ? h("p", {}, `${counted(conflicts, "contradiction")} hang on it; this is one of them.`) : "",
      this.chain(chain, links, rows),
      h(
        "div",
        { class: "choices-row", role: "group", "aria-label": "Decide" },
        decide("keep", `Keep: ${inWords(answer)}`),
        same ? null : decide("flip", `Change to: ${inWords(again)}`),
        decide("retract", "Take the answer back"),
        h(
          "button",
          { type: "button", class: "quiet", "data-later": true, onclick: () => this.leave() },
          "Decide later",
        ),
      ),
    );
    say(`${who} before: ${inWords(answer)}. You answer now: ${inWords(again)}. ${REASONS[kind] ?? ""}`);
    /** @type {HTMLElement | null | undefined} */ (this.body?.querySelector(".choice"))?.focus();
  }

  /** The rows of a contradiction side by side, with what was answered between them. @param {number[]} chain @param {Link[]} links @param {number[]} rows */
  chain(chain, links, rows) {
    const shown = rows.slice(0, SHOWN);
    const figure = h("figure", { class: "chain" }, this.studio.thumbnails(shown));
    if (!links.length) return figure;
    get(`rows?rows=${shown.join(",")}`)
      .then((found) => {
        const names = new Map(found.map((/** @type {import("./rowview.js").Row} */ row) => [row.row, apart(row.id)]));
        const name = (/** @type {number} */ row) => names.get(row) ?? String(row);
        const word = (/** @type {Link} */ { rows: [i, j], same, asked, annotator }) =>
          h(
            "li",
            { class: asked ? "asked" : null },
            `${name(i)} · ${name(j)}: ${this.studio.ranking ? `${name(same ? i : j)} is better` : same ? "same" : "different"} (${apart(annotator)})${asked ? ", asked again just now" : ""}`,
          );
        figure.append(h("figcaption", {}, `The chain: ${chain.map(name).join(" → ")}`, h("ul", {}, links.map(word))));
      })
      .catch(() => undefined);
    return figure;
  }

  /** @param {string} outcome @param {string} now */
  async decide(outcome, now) {
    this.decided += 1;
    // A flag stays with its answer, but is not a reason to ask a third time.
    if (this.doubt.kind !== "contradiction") this.later.add(this.doubt.answer.id);
    await this.studio.outbox.put("review", { id: newId(), target: this.doubt.answer.id, outcome, answer: now });
    await this.load();
  }

  leave() {
    this.later.add(this.doubt.answer.id);
    this.doubts.shift();
    this.ask();
  }
}
