// @ts-check
/** The question on the left: two rows, a row and the groups, or two rows of which one is better. */

import { h, page } from "./dom.js";
import { PAUSE, shortcut } from "./keys.js";
import { fromKeyWord, keyWords } from "./keywords.js";
import { markPicture } from "./marks.js";
import { comparison, numbersTable, pictureParts, scrollTogether, smallCells, telling } from "./rowview.js";
import { questionWords, say } from "./speech.js";

/** @typedef {import("./rowview.js").Row} Row */
/** @typedef {import("./rowview.js").LineScale} LineScale */
/** @typedef {import("./keys.js").Keys} Keys */
/**
 * @typedef {object} Question
 * @property {string} id
 * @property {"same"|"place"|"prefer"} kind
 * @property {string[]} answers
 * @property {Row[]} rows
 * @property {string[]} names of the groups on a placement screen
 * @property {number[]} numbers of these groups; 0 for one that is no longer there
 * @property {number} n_groups there are, on the screen or not
 * @property {boolean} again whether the row was none of the groups that were shown with it before
 * @property {Record<string, any>} raw
 */

/** @type {Record<string, string>} */
export const WORDS = {
  same: "Same",
  different: "Different",
  unsure: "Can’t tell",
  left: "Left",
  right: "Right",
  equal: "Equally good",
  none: "None of these",
};

/** @type {Record<string, string>} */
const TITLES = {
  same: "Same or different?",
  place: "Where does this one belong?",
  prefer: "Which one is better?",
};

/** Letters of a text on a card; as many of them are shown as fit. */
const EXCERPT = 400;

export class QuestionView {
  /**
   * @param {HTMLElement} root
   * @param {object} options
   * @param {Keys} options.keys
   * @param {LineScale} [options.scale]
   * @param {import("./rowview.js").Typical} [options.typical]
   * @param {(answer: string) => void} options.answer
   * @param {() => void} [options.undo] without it, nothing can be undone here
   */
  constructor(root, { keys, scale, typical, answer, undo }) {
    this.root = root;
    this.keys = keys;
    this.scale = scale;
    this.typical = typical;
    this.answer = answer;
    /** @type {Question | null} */
    this.question = null;
    this.since = 0;
    /** The buttons below the rows, and what they were made from. */
    this.bar = h("div");
    this.made = "";
    /** The title of what is said in place of a question. */
    this.said = "";
    /** @type {string | null} the answer whose button has the focus; empty if something else here has it */
    this.held = null;
    new ResizeObserver(() => requestAnimationFrame(() => this.fit())).observe(root);
    this.undo = undo
      ? h(
          "button",
          { type: "button", class: "quiet outlined", "data-undo": true, hidden: true, onclick: undo },
          "Undo ",
          this.hint("undo"),
        )
      : null;
  }

  /** Milliseconds for which the question has been there. */
  get age() {
    return performance.now() - this.since;
  }

  /** @param {Question} question @param {HTMLElement} [note] something to say above it @param {boolean} [silent] for those who have heard it */
  show(question, note, silent = false) {
    if (this.question?.id === question.id && !note) return;
    this.hold();
    this.question = question;
    this.since = performance.now();
    this.root.dataset.question = question.id;
    this.root.dataset.kind = question.kind;
    const bar = this.answers(question);
    for (const child of [...this.root.children]) if (child !== bar) child.remove();
    if (!bar.parentNode) this.root.append(bar);
    const parts = question.kind === "place" ? this.placement(question) : this.pair(question);
    bar.before(...[note, this.head(TITLES[question.kind]), ...parts].filter((part) => part instanceof Node));
    scrollTogether(this.root);
    this.fit();
    this.release();
    this.said = "";
    if (silent) return;
    say(note?.querySelector("span")?.textContent ?? "");
    say(`${TITLES[question.kind]} ${questionWords(question)}`);
  }

  /** Remember where the focus is, before what has it goes. */
  hold() {
    const active = page().activeElement;
    // Words that stood in for a question between two of them have passed it on.
    if (active === this.root && !this.question) return;
    this.held = this.root.contains(active)
      ? (/** @type {HTMLElement | null} */ (active?.closest("[data-answer]"))?.dataset.answer ?? "")
      : null;
  }

  /** Give the focus to where it was: who answers by a button goes on there, where readers let keys through. */
  release() {
    if (this.held === null) return;
    const again =
      this.held &&
      (this.root.querySelector(`[data-answer="${this.held}"]`) ?? this.root.querySelector(".answers [data-answer]"));
    /** @type {HTMLElement} */ (again || this.root).focus({ preventScroll: true });
  }

  /** Words in place of a question. @param {string} title @param {...(string | HTMLElement)} words */
  instead(title, ...words) {
    this.hold();
    this.question = null;
    delete this.root.dataset.question;
    delete this.root.dataset.kind;
    this.root.replaceChildren(
      this.head(title),
      ...words.map((word) => (typeof word === "string" ? h("p", { class: "lead" }, word) : word)),
    );
    this.release();
    // The page tries again and again to send what waits; that it waits is said once.
    if (/\w/.test(title) && this.said !== title)
      say([title, ...words.filter((word) => typeof word === "string")].join(". "));
    this.said = title;
  }

  /** @param {string} title */
  head(title) {
    this.undo?.querySelector("kbd")?.replaceWith(this.hint("undo"));
    return h("div", { class: "ask-head" }, h("h2", {}, title), this.undo);
  }

  /** The key of an action, for those who look. @param {import("./keys.js").Action} action */
  hint(action) {
    const label = this.keys.label(action);
    return h("kbd", { "aria-hidden": "true", hidden: !label }, label);
  }

  /** @param {Question} question */
  pair(question) {
    const sides = question.rows.map((row, side) =>
      h(
        "article",
        { class: "row", "data-row": row.row, "aria-label": `${side === 0 ? "Left" : "Right"}: ${row.id}` },
        h("h3", {}, row.id),
        pictureParts(row, { scale: this.scale }),
      ),
    );
    const seen = question.rows.some((row) => row.pixels || row.line || row.picture !== undefined);
    const bare = !seen && question.rows.every((row) => !row.texts?.length);
    const shown = [
      h("div", { class: `pair${bare ? " bare" : ""}` }, sides),
      comparison(question.rows, this.typical),
      numbersTable(question.rows),
    ];
    // What is seen at a glance comes first: pictures, then cells, then texts.
    return seen ? shown : shown.reverse();
  }

  /** The buttons below the rows. They stay from question to question: a button that keeps the focus is not read out again. @param {Question} question */
  answers({ kind, answers }) {
    const names = answers.filter((name) => !/^\d+$/.test(name));
    const made = JSON.stringify([kind, names, this.keys.chosen]);
    if (this.made !== made)
      this.bar = h(
        "div",
        { class: `answers ${kind}`, role: "toolbar", "aria-label": "Answer" },
        names.map((name) => this.button(name, WORDS[name] ?? name)),
      );
    this.made = made;
    return this.bar;
  }

  /** @param {Question} question */
  placement(question) {
    const [subject, ...groups] = question.rows;
    const [, ...words] = keyWords(question.rows.map((row) => (row.texts ?? []).map(([, text]) => text).join(" ")));
    const columns = telling(groups, this.typical);
    const cards = groups.map((row, k) => {
      const slot = String(k + 1);
      const name = question.names[k] || (question.numbers[k] ? `Group ${question.numbers[k]}` : "With this one");
      return h(
        "article",
        { class: "card", "data-row": row.row, "aria-label": `${name}, for example ${row.id}` },
        // The key is drawn as one, away from the name: a group's number is another one.
        h("kbd", { "aria-hidden": "true" }, slot),
        h(
          "div",
          { class: "card-body" },
          this.cardTexts(row, words[k]),
          pictureParts({ ...row, texts: [] }, { scale: this.scale, compact: true }),
          smallCells(columns.map((column) => row.cells?.find(([each]) => each === column) ?? [column, ""])),
          h("div", { class: "card-foot" }, h("span", { class: "row-id" }, row.id), this.moreCells(row)),
        ),
        this.groupButton(slot, name, question.numbers[k], row.id),
      );
    });
    const one = h(
      "article",
      { class: "row subject", "data-row": subject.row, "aria-label": `This one: ${subject.id}` },
      h("h3", {}, subject.id),
      pictureParts(subject, { scale: this.scale }),
      comparison([subject]),
      numbersTable([subject]),
    );
    const others = question.n_groups - groups.length;
    const some = `${groups.length} of ${question.n_groups} groups`;
    return [
      question.again || others > 0
        ? h(
            "p",
            { class: "lead shown-groups" },
            question.again
              ? `None fitted so far. Now ${some}: others, or likely ones again, with another row.`
              : `${some}. The others were ruled out, or may follow if none of these fits.`,
          )
        : null,
      h(
        "div",
        {
          class: `placement${subject.texts?.length ? " wordy" : subject.cells?.length || subject.line ? " cellular" : ""}`,
        },
        one,
        h("div", { class: "cards" }, cards),
      ),
    ];
  }

  /** The texts of a card: what tells it from the others comes first. @param {Row} row @param {string[]} words */
  cardTexts(row, words) {
    if (!row.texts?.length) return null;
    const texts = row.texts.map(([, text]) => h("p", { class: "excerpt" }, fromKeyWord(text, words).slice(0, EXCERPT)));
    return [words.length ? h("p", { class: "key-words" }, words.join(" · ")) : null, ...texts].filter(
      (part) => part !== null,
    );
  }

  /** Shows the cells of a card that do not fit. @param {Row} row */
  moreCells(row) {
    if (!row.cells?.length) return null;
    const button = h("button", { type: "button", class: "more-cells", "aria-expanded": "false" });
    button.addEventListener("click", (event) => {
      const open = button.closest(".card")?.classList.toggle("open") ?? false;
      button.setAttribute("aria-expanded", String(open));
      if (event.detail) this.root.focus({ preventScroll: true });
      this.fit();
    });
    return button;
  }

  /** Leave out the cells that do not fit on the cards, and say how many. */
  fit() {
    const buttons = /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(".more-cells")]);
    const cards = buttons.map((button) => {
      const list = /** @type {HTMLElement} */ (button.closest(".card")?.querySelector(".mini"));
      return { button, list, cells: /** @type {HTMLElement[]} */ ([...list.children]) };
    });
    for (const { button, cells } of cards) for (const each of [button, ...cells]) each.hidden = false;
    // All is measured before anything is changed: the page is laid out once.
    const measured = cards.map(({ list, cells }) => {
      const end = list.getBoundingClientRect().bottom + 1;
      const below = cells.filter((cell) => cell.getBoundingClientRect().bottom > end);
      const cut = cells.filter((cell) => [...cell.children].some((part) => part.scrollWidth > part.clientWidth));
      return { below, cut };
    });
    cards.forEach(({ button, cells }, k) => {
      const { below, cut } = measured[k];
      const open = button.getAttribute("aria-expanded") === "true";
      const missed = cells.filter((cell) => below.includes(cell) || cut.includes(cell));
      for (const cell of below) cell.hidden = true;
      button.hidden = !open && !missed.length;
      button.title = missed.map((cell) => [...cell.children].map((part) => part.textContent).join(" ")).join(", ");
      button.textContent = open ? "Less" : below.length ? `${below.length} more` : "In full";
    });
  }

  /** The answer of a card. @param {string} slot @param {string} name @param {number} number @param {string} id */
  groupButton(slot, name, number, id) {
    const button = this.button(slot, name);
    button.setAttribute("aria-keyshortcuts", slot);
    button.setAttribute("aria-label", `${name}, for example ${id}`);
    if (number) button.prepend(markPicture(number));
    return button;
  }

  /** @param {string} answer @param {string} words */
  button(answer, words) {
    const label = this.keys.label(/** @type {any} */ (answer));
    const keys = label
      ? this.keys.chosen[/** @type {import("./keys.js").Action} */ (answer)].map(shortcut).join(" ")
      : null;
    const button = h(
      "button",
      { type: "button", "data-answer": answer, "aria-keyshortcuts": keys, class: "answer" },
      h("span", {}, words),
      label ? h("kbd", { "aria-hidden": "true" }, label) : null,
    );
    button.addEventListener("click", (event) => {
      // The second click of a double click is not an answer to the next question, nor is Enter pressed twice.
      if (event.detail > 1 || (!event.detail && this.age < PAUSE)) return;
      // After a click of the mouse Space is a key of the page again.
      if (event.detail) this.root.focus({ preventScroll: true });
      this.answer(answer);
    });
    button.addEventListener("keydown", (event) => event.repeat && event.preventDefault());
    return button;
  }

  /** Press the button of an answer, if there is one. @param {string} answer @returns {boolean} */
  press(answer) {
    if (!this.question?.answers.includes(answer)) return false;
    this.answer(answer);
    return true;
  }
}
