// @ts-check
/** The studio's page: what the person does goes out, what the server says comes in. */

import { ApiError, get, getBinary, line, newId, post, speakOf } from "./api.js";
import { byId, counted, h, page } from "./dom.js";
import { keep, kept, storage } from "./kept.js";
import { Keys } from "./keys.js";
import { MapView, unpack, unpackCertain } from "./map.js";
import { Outbox } from "./outbox.js";
import { Panels } from "./panels.js";
import { certaintyWords } from "./progress.js";
import { QuestionView } from "./question.js";
import { RankingView } from "./ranking.js";
import { pictureParts, smallCells } from "./rowview.js";
import { say } from "./speech.js";
import { isNew, listen } from "./stream.js";
import { Strip, inWords, whichRows } from "./strip.js";
import { MapTools } from "./tools.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {import("./strip.js").Past} Past */
/** @typedef {{sure: number, rows: number, questions: number, more: number | null}} Certainty */
/** @typedef {{run: string, order: number, ready: boolean, trouble: string, answers: number, left_out: string, certainty: Certainty | null, map: {version: number, answers: number, name: string, error: string, fitting: boolean, points: number}}} Status */

const KEYS = "pairlens.keys";
const GROUPS_PAUSE = 1000;
const THUMBNAIL_CELLS = 6;

export class Studio {
  /** @param {any} state */
  constructor(state) {
    this.state = state;
    /** @type {Status} */
    this.status = state.status;
    /** @type {Question[]} */
    this.hand = [];
    /** @type {Past[]} */
    this.recent = state.recent;
    /** @type {Question[]} questions that do not count */
    this.practice = [];
    this.online = true;
    this.shownMap = -1;
    this.asking = false;
    this.groupsAt = 0;
    this.groupsLast = -Infinity;
    this.shownOnce = false;
    this.keys = new Keys(kept(KEYS) ?? {});
    /** Whether rows are ranked, and not grouped. */
    this.ranking = state.question === "prefer";
    const { line: scale, typical } = state.table;
    this.question = new QuestionView(byId("question"), {
      keys: this.keys,
      scale,
      typical,
      answer: (answer) => this.answer(answer),
      undo: () => this.undo(),
    });
    this.map = new MapView(byId("map"), {
      describe: async (row) => {
        const [shown] = await get(`rows?rows=${row}`).catch(() => [null]);
        if (!shown) return null;
        return this.thumbnail(shown);
      },
      selected: (rows) => {
        line()?.selected(rows);
        this.panels.chooser.selection(rows);
      },
      rename: (group) => this.panels.chooser.group(group),
      tell: () => this.panels.map(),
      pick: (row) => this.panels.chooser.place(row),
    });
    this.map.root.insertBefore(
      new MapTools(this.map, { columns: state.table.colours, groups: !this.ranking }).root,
      this.map.root.children[1],
    );
    this.ranked = this.ranking
      ? new RankingView({ thumbnail: (row) => this.thumbnail(row), point: (rows) => this.map.point(rows) })
      : null;
    this.ranked?.cover(this.map.root);
    this.strip = new Strip(byId("strip"), {
      change: (past, answer) => this.outbox.put("change", { id: newId(), target: past.id, answer }),
      retract: (past) => this.outbox.put("retract", { id: newId(), target: past.id }),
      flag: (past) => this.outbox.put("flag", { id: newId(), target: past.id, flagged: !past.flagged }),
      point: (rows) => this.map.point(rows),
    });
    this.outbox = new Outbox({
      name: `pairlens.outbox/${state.study}/${state.annotator}`,
      send: post,
      keep: storage(),
      delivered: (reply, parcel, left) => {
        this.acknowledge(parcel);
        this.delivered(reply, left);
        this.tellTabs("mine", {});
      },
      refused: (error) => {
        this.panels.toast(sentence(error.message));
        this.next();
      },
      waiting: (error) => this.waiting(error),
    });
    this.panels = new Panels(this);
    byId("source").textContent = state.table.source;
    byId("menu").replaceChildren(...this.panels.menu());
    page().addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)));
    this.strip.show(this.recent);
    this.tell(this.status);
    this.tellTabs = listen({
      study: state.study,
      heard: (topic, content) => this.heard(topic, content),
      connected: (connected) => this.connected(connected),
    });
    this.outbox.flush().then(() => this.next());
    this.loadGroups();
  }

  // Questions and answers

  /** Ask for questions, unless some are on the way. */
  async next() {
    if (this.status.trouble) return this.question.instead("No questions", this.status.trouble);
    if (!this.status.ready) {
      this.question.instead(
        "One moment",
        "The studio is reading the rows. The first question comes as soon as it knows their neighbours.",
      );
      return;
    }
    if (this.asking) return;
    this.asking = true;
    try {
      this.delivered(await post("next", {}), this.outbox.length);
    } catch (error) {
      this.waiting(/** @type {ApiError} */ (error));
      setTimeout(() => this.next(), 1500);
    } finally {
      this.asking = false;
    }
  }

  /** @param {any} reply @param {number} left parcels that the server does not know yet */
  delivered(reply, left) {
    this.connected(true);
    this.recent = reply.recent;
    this.strip.show(this.recent);
    this.tell(reply.status);
    if (left) return;
    this.hand = reply.questions;
    this.display();
  }

  /** Say that something other than an answer was stored. @param {import("./outbox.js").Parcel} parcel */
  acknowledge({ route, body }) {
    const past = route === "undo" ? this.recent[0] : this.recent.find((each) => each.id === body.target);
    if (route === "name") say(body.name ? `Group named ${body.name}.` : "Group without a name.");
    if (!past) return;
    const rows = whichRows(past, " and ");
    if (route === "undo" || route === "retract") say(`Taken back: ${rows}, ${inWords(past)}.`);
    if (route === "change") say(`Changed: ${rows}, ${inWords({ ...past, answer: body.answer })}.`);
    if (route === "flag") say(`${body.flagged ? "Flagged" : "No longer flagged"}: ${rows}, ${inWords(past)}.`);
  }

  /** Whether nothing is left to ask. */
  get finished() {
    return this.status.ready && !this.asking && !this.question.question && !this.hand.length && !this.outbox.length;
  }

  /** Show the first question in hand, or say why there is none. */
  display() {
    if (this.practice.length) return;
    if (this.hand.length) {
      this.question.show(
        this.hand[0],
        this.status.answers || this.outbox.length || this.shownOnce ? undefined : this.welcome(),
      );
      this.shownOnce = true;
      return;
    }
    if (this.outbox.length) {
      this.question.instead(
        "Waiting for the studio",
        `Your ${this.outbox.length === 1 ? "answer is" : "answers are"} kept in this browser. The page sends them when the studio is back; then questions go on.`,
      );
      return;
    }
    this.question.instead(
      "Nothing is left to ask",
      "Every row is placed, or set aside, or waits for somebody else’s answer. You can review the answers, or export the result.",
      h(
        "p",
        {},
        h("button", { type: "button", class: "main", onclick: () => this.panels.open("review") }, "Review"),
        " ",
        h("button", { type: "button", class: "main", onclick: () => this.panels.open("export") }, "Export"),
      ),
    );
  }

  /** @param {string} answer */
  answer(answer) {
    const question = this.question.question;
    if (!question || !question.answers.includes(answer)) return;
    say(`Answer: ${inWords({ answer, ids: question.rows.map((row) => row.id) })}.`);
    if (this.practice.length) return this.practised(question);
    this.hand = this.hand.filter((each) => each.id !== question.id);
    this.map.flash(question.rows.map((row) => row.row));
    this.outbox.put("answer", { id: newId(), question: question.raw, answer });
    if (this.hand.length) this.question.show(this.hand[0]);
    else this.question.instead("…");
    this.tell(this.status);
  }

  /** What somebody should know before the first answer. */
  welcome() {
    return h(
      "p",
      { class: "welcome" },
      h(
        "span",
        {},
        "No answer yet: the map shows the rows as they are. Press a button, or its key. Undo takes an answer back.",
      ),
      h("button", { type: "button", class: "quiet outlined", onclick: () => this.practise() }, "Practise first"),
    );
  }

  /** A row in small, as on the map. @param {import("./rowview.js").Row} row */
  thumbnail(row) {
    return h(
      "div",
      { class: "thumbnail" },
      h("h3", {}, row.id),
      pictureParts(row, { scale: this.state.table.line, compact: true }),
      smallCells(row.cells?.slice(0, THUMBNAIL_CELLS)),
    );
  }

  /** Rows in small, as soon as they are here. @param {number[]} rows */
  thumbnails(rows) {
    const place = h("div", { class: "thumbnails" });
    get(`rows?rows=${rows.join(",")}`)
      .then((shown) =>
        place.append(...shown.map((/** @type {import("./rowview.js").Row} */ row) => this.thumbnail(row))),
      )
      .catch(() => undefined);
    return place;
  }

  /** Three questions about rows taken at random; nothing is stored. */
  async practise() {
    const any = () => Math.floor(Math.random() * this.state.table.rows);
    const pairs = Array.from({ length: 3 }, () => [any(), any()]).map(([i, j]) => [
      i,
      i === j ? (i + 1) % this.state.table.rows : j,
    ]);
    const rows = await get(`rows?rows=${pairs.flat().join(",")}`);
    const kind = this.state.question === "prefer" ? "prefer" : "same";
    const answers = kind === "prefer" ? ["left", "right", "equal", "unsure"] : ["same", "different", "unsure"];
    this.practice = pairs.map((_, k) => ({
      id: `practice-${k + 1}`,
      kind,
      answers,
      rows: rows.slice(2 * k, 2 * k + 2),
      names: [],
      numbers: [],
      n_groups: 0,
      again: false,
      raw: {},
    }));
    this.showPractice();
  }

  showPractice() {
    const left = this.practice.length;
    this.offerUndo();
    const stop = h(
      "button",
      { type: "button", class: "quiet outlined", onclick: () => this.endPractice() },
      "Stop practising",
    );
    this.question.show(
      this.practice[0],
      h(
        "p",
        { class: "welcome" },
        h("span", {}, `Practice, ${counted(left, "question")} left: nothing is stored.`),
        stop,
      ),
    );
  }

  /** @param {Question} question */
  practised(question) {
    this.practice = this.practice.filter((each) => each.id !== question.id);
    if (this.practice.length) this.showPractice();
    else this.endPractice();
  }

  endPractice() {
    this.practice = [];
    this.offerUndo();
    this.panels.toast("From here on, answers count.");
    this.display();
  }

  /** There is a button for it as soon as there is something to undo. */
  offerUndo() {
    this.question.undo?.toggleAttribute(
      "hidden",
      this.practice.length > 0 || !(this.recent.length || this.outbox?.length),
    );
  }

  undo() {
    if (this.practice.length) return;
    const unsent = this.outbox.takeBack("answer");
    if (!unsent && !this.recent.length) return this.panels.toast("There is nothing to undo.");
    if (!unsent) return void this.outbox.put("undo", { id: newId() });
    say("Taken back.");
    this.next();
  }

  flag() {
    const last = this.recent[0];
    if (!last) return this.panels.toast("There is no answer to flag yet.");
    this.outbox.put("flag", { id: newId(), target: last.id, flagged: !last.flagged });
  }

  // What the server says

  /** @param {string} topic @param {any} content */
  heard(topic, content) {
    if (topic === "ready") {
      this.tell(content);
      this.next();
      this.loadGroups();
    } else if (topic === "status") {
      this.tell(content);
      this.loadGroups();
      if (!this.question.question && !this.outbox.length && !this.practice.length) this.next();
    } else if (topic === "groups") this.loadGroups();
    // Another tab of this person has answered, perhaps the question that is shown here.
    else if (topic === "mine" && !this.outbox.length && !this.practice.length) this.next();
    else if (topic === "trouble") this.panels.toast(sentence(content.words));
  }

  /** @param {Status} status */
  tell(status) {
    this.offerUndo();
    this.strip.progress(this.outbox?.length ? `${counted(this.outbox.length, "answer")} not sent yet` : "");
    // A reply may be overtaken by the stream, which tells of a newer map.
    if (!isNew(status, this.status)) return;
    if (status.run !== this.status.run) this.shownMap = -1;
    this.status = status;
    const { answers, map } = status;
    banner(status.left_out ? sentence(status.left_out) : "", "left-out");
    byId("count").textContent = String(answers);
    byId("count-word").textContent = answers === 1 ? "answer" : "answers";
    this.map.sure.textContent = certaintyWords(status.certainty);
    const behind = answers - map.answers;
    let words = map.points ? `${map.name}, ${counted(map.points, "row")}` : "The map is being made …";
    if (map.points && !map.answers && !answers) words += "; no answer yet";
    if (map.points && behind) words += `; ${counted(Math.abs(behind), "answer")} behind`;
    if (map.error)
      words = `The map could not be made anew (${map.error}). ${map.points ? "This is the last one; all" : "All"} answers are safe.`;
    if (map.error && this.map.words.textContent !== words) say(words);
    this.map.words.textContent = words;
    this.map.words.classList.toggle("trouble", Boolean(map.error));
    if (map.version !== this.shownMap && map.points) this.loadMap(map.version);
  }

  /** @param {number} version */
  async loadMap(version) {
    this.shownMap = version;
    try {
      this.map.show(unpack(await getBinary("map")));
      this.map.name(await get("islands"));
    } catch {
      this.shownMap = -1;
    }
  }

  /** Ask for the groups, at most once a second however fast answers come. */
  loadGroups() {
    if (this.groupsAt) return;
    const pause = Math.max(0, this.groupsLast + GROUPS_PAUSE - performance.now());
    this.groupsAt = setTimeout(async () => {
      this.groupsAt = 0;
      this.groupsLast = performance.now();
      // If it fails, the next event asks again.
      if (this.ranked) return this.status.ready ? this.ranked.load() : null;
      const [groups, certain] = await Promise.all([get("groups"), getBinary("certain")]).catch(() => [null, null]);
      if (groups) this.map.colour(groups, certain && unpackCertain(certain));
    }, pause);
  }

  /** @param {boolean} connected */
  connected(connected) {
    if (!connected) {
      // The stream does not say why it ended; a request does.
      get("state").catch((error) => this.waiting(error));
      return;
    }
    if (this.online) return;
    this.online = true;
    banner("");
    say("The studio is back.");
    this.outbox.flush();
    get("state")
      .then((state) => this.tell(state.status))
      .catch(() => undefined);
    if (!this.question.question) this.next();
  }

  /** @param {ApiError} error */
  waiting(error) {
    const kept = this.outbox.length
      ? ` ${counted(this.outbox.length, "answer")} not stored yet, but kept in this browser; the page sends ${this.outbox.length === 1 ? "it" : "them"} when the studio is back.`
      : "";
    if (error.status === 0 || error.strange) this.online = false;
    if (error.status === 401) banner(`The studio was started anew. Open the link that it printed last.${kept}`);
    else if (error.status === 410)
      banner(
        `Another studio runs at this address now; this page is of ${this.state.table.source}. Open that one again to go on.${kept}`,
      );
    else if (error.status === 0)
      banner(
        line()
          ? `The kernel does not answer: it is busy with another cell, or was restarted; then run this cell again.${kept}`
          : `The studio does not answer; perhaps it was stopped.${kept}`,
      );
    else if (error.status !== 503) banner(`${sentence(error.message)}${kept}`);
    if (!this.hand.length && error.status !== 503) this.display();
  }

  // Keys

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("input, textarea, select, dialog, .choices, [contenteditable]") || event.defaultPrevented)
      return;
    // Space and Enter on a button press that button, as everywhere.
    if (event.key === " " && target.closest("button, a, summary")) return;
    const meaning = this.keys.meaning(event, this.question.age);
    if (!meaning) {
      if (event.key === " ") event.preventDefault();
      return;
    }
    event.preventDefault();
    const { action, group } = meaning;
    if (action === "undo") this.undo();
    else if (action === "flag") this.flag();
    else if (action === "review") this.panels.open("review");
    else if (action === "help") this.panels.open("help");
    else if (action === "map") this.map.canvas.focus();
    else this.question.press(group ?? action);
  }

  /** @param {import("./keys.js").Action} action @param {string} name */
  assign(action, name) {
    keep(KEYS, this.keys.assign(action, name));
    const shown = this.question.question;
    if (shown) {
      this.question.question = null;
      this.question.show(shown, undefined, true);
    }
  }
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** @param {string} text @param {string} [place] */
function banner(text, place = "banner") {
  const element = byId(place);
  element.hidden = !text;
  if (element.textContent === text) return;
  element.textContent = text;
  say(text);
}

/** Begin as soon as the studio answers. @param {(studio: Studio) => void} [ready] */
export async function begin(ready) {
  try {
    const state = await get("state");
    speakOf(state.study);
    ready?.(new Studio(state));
  } catch (error) {
    const failure = /** @type {ApiError} */ (error);
    banner(failure.status === 401 ? "Open the studio by the link that it printed last." : sentence(failure.message));
    if (failure.status === 0) setTimeout(() => begin(ready), 2000);
    if (!(failure instanceof ApiError)) throw error;
  }
}
