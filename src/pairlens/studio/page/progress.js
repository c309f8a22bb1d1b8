// @ts-check
/** How far the answers have come: the learning curve of audited questions, and a hint when to stop. */

import { apart, counted, h, percent, svg } from "./dom.js";
import { groupName } from "./legend.js";
import { orderWords } from "./ranking.js";

/** @typedef {{answers: number, auc: number, low: number, high: number, pca: number | null, pca_low: number | null, pca_high: number | null, n: number}} Point */

/** @typedef {import("./app.js").Studio} Studio */

/** Width of an interval from which on it tells nothing. */
const WIDEST = 0.35;
/** Comparisons that came back from which on their share is said. */
const FEWEST_REPEATS = 10;
const WIDE = 560;
const HIGH = 220;
const LEFT = 36;
const LOW = 24;

/**
 * Places on the picture: answers to the right, 0.4 to 1 upwards.
 * @param {Point[]} curve
 */
export function scales(curve) {
  const last = Math.max(1, ...curve.map((point) => point.answers));
  const first = Math.min(last - 1, ...curve.map((point) => point.answers));
  const least = Math.min(0.4, ...curve.map((point) => point.low));
  return {
    least,
    x: (/** @type {number} */ answers) => LEFT + ((answers - first) / (last - first)) * (WIDE - LEFT - 12),
    y: (/** @type {number} */ value) => 10 + (1 - (value - least) / (1 - least)) * (HIGH - LOW - 10),
  };
}

/** @param {Point[]} curve */
export function curvePicture(curve) {
  const { x, y, least } = scales(curve);
  const line = (/** @type {(point: Point) => number} */ value) =>
    curve.map((point) => `${x(point.answers).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" ");
  const band = `${line((point) => point.low)} ${[...curve]
    .reverse()
    .map((point) => `${x(point.answers).toFixed(1)},${y(point.high).toFixed(1)}`)
    .join(" ")}`;
  const ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1].filter((value) => value >= least);
  const text = (
    /** @type {number} */ left,
    /** @type {number} */ top,
    /** @type {string} */ words,
    /** @type {string} */ anchor = "end",
  ) => {
    const element = svg("text", { x: left, y: top, "text-anchor": anchor });
    element.textContent = words;
    return element;
  };
  const last = curve[curve.length - 1];
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      class: "curve",
      role: "img",
      "aria-label": `Learning curve: after ${last.answers} answers ${last.auc.toFixed(2)}, interval ${last.low.toFixed(2)} to ${last.high.toFixed(2)}`,
    },
    ...ticks.flatMap((value) => [
      svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(value), y2: y(value), class: "tick" }),
      text(LEFT - 6, y(value) + 4, value.toFixed(1)),
    ]),
    svg("polygon", { points: band, class: "band" }),
    ...(last.pca === null ? [] : [svg("polyline", { points: line((point) => point.pca ?? 0.5), class: "pca" })]),
    svg("polyline", { points: line((point) => point.auc), class: "own" }),
    text(LEFT, HIGH - 4, String(curve[0].answers), "start"),
    text(WIDE - 12, HIGH - 4, `${last.answers} answers`),
  );
}

/** How many rows are sure of their group. @param {import("./app.js").Certainty | null} certainty */
export function certaintyWords(certainty) {
  if (!certainty) return "";
  const { sure, rows, questions, more } = certainty;
  const words = `${sure.toLocaleString("en")} of ${counted(rows, "row")} ${sure === 1 ? "is" : "are"} sure of their group`;
  if (sure === rows || !more) return `${words}.`;
  return `${words}; at this pace, ${questions} questions would settle about ${more.toLocaleString("en")} more.`;
}

/**
 * What the curve tells by now, and whether it tells anything: not before its interval is narrow and beyond chance.
 * @param {Point[]} curve
 * @param {string} what it is about, such as "how often …"
 * @returns {{early: boolean, words: string}}
 */
export function curveVerdict(curve, what) {
  const last = curve.at(-1);
  if (!last)
    return {
      early: true,
      words: `Too early to tell ${what}: fewer than ten questions were drawn at random, or all of them had the same answer.`,
    };
  const interval = `between ${last.low.toFixed(2)} and ${last.high.toFixed(2)} (${percent(0.95)}), from ${counted(last.n, "question")} drawn at random`;
  if (last.high - last.low > WIDEST || last.low <= 0.5)
    return { early: true, words: `Too early to tell ${what}: ${interval}.` };
  return {
    early: false,
    words: `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${last.auc.toFixed(2)} (0.5 is chance), ${interval}.`,
  };
}

/**
 * How often comparisons that came back were answered as before, once there are enough of them.
 * @param {{n: number, share: number}} consistency
 */
export function consistencyWords({ n, share }) {
  if (n < FEWEST_REPEATS)
    return `Too early to tell how often you answer as before: ${counted(n, "comparison")} came back with sides swapped.`;
  return `Of ${counted(n, "comparison")} that came back with sides swapped, you answered ${percent(share)} as before: nothing learned from you can be better than that.`;
}

/**
 * Who answered: people, and each machine with its error rate.
 * @param {Record<string, number>} people
 * @param {Record<string, any>} machines
 * @param {number} due audits that wait for a person
 */
export function whoAnswered(people, machines, due) {
  const names = Object.entries(machines ?? {});
  if (!names.length) return null;
  const items = names.map(([name, rate]) =>
    h(
      "li",
      { "data-machine": name },
      `${apart(name.replace("machine:", ""))} (machine): ${counted(rate.answers, "answer")}, about ${percent(rate.rate)} of them wrong (${percent(rate.low)} to ${percent(rate.high)}); ${rate.wrong} of ${counted(rate.audits, "audit")} by people disagree.`,
    ),
  );
  const own = Object.entries(people).map(([name, count]) => h("li", {}, `${apart(name)}: ${counted(count, "answer")}`));
  return h(
    "section",
    { class: "annotators" },
    h("h3", {}, "Who answered"),
    h("ul", {}, own, items),
    due
      ? h("p", { class: "lead" }, `${counted(due, "question")} of the machine come to you first, without its answers.`)
      : null,
  );
}

/** The rows whose group is least sure, each of which can be placed. @param {any[]} rows @param {Studio} studio */
function leastSure(rows, studio) {
  if (!rows?.length) return null;
  const items = rows.map((row) => {
    const place = h("button", { type: "button", class: "quiet outlined", "data-least-sure": row.row }, "Place it");
    place.addEventListener("click", () => {
      /** @type {HTMLDialogElement} */ (place.closest("dialog")).close();
      studio.panels.chooser.place(row.row);
    });
    return h(
      "div",
      { class: "least" },
      studio.thumbnail(row),
      h("small", {}, `${groupName(row.group)}? ${percent(row.probability)}`),
      place,
    );
  });
  return h("section", {}, h("h3", {}, "The least sure"), h("div", { class: "gallery" }, items));
}

/**
 * @param {any} progress
 * @param {Studio} studio
 * @returns {(Node | string | null)[]}
 */
export function progressContent(progress, studio) {
  const { curve, hint, error_rate: wrong, placed, counts, consistency } = progress;
  const { answers } = studio.status;
  const words = /** @type {Record<string, string>} */ ({
    same: "same",
    different: "different",
    unsure: "can’t tell",
    placed: "placed",
    none: "none of these",
    left: "for the left row",
    right: "for the right row",
    equal: "equally good",
  });
  const list = Object.entries(counts).map(([name, count]) => `${count} ${words[name] ?? name}`);
  const verdict = curveVerdict(
    curve,
    studio.ranking
      ? "how often the order of two rows is foreseen"
      : "how well distance in the view tells “same” from “different”",
  );
  const dashed = studio.ranking ? "" : " The dashed line is PCA’s, which knows no answers.";
  return [
    h(
      "p",
      {},
      `${counted(answers, "answer")}${list.length ? `: ${list.join(", ")}` : ""}.`,
      placed ? ` ${counted(placed, "row")} have a group by answers.` : "",
    ),
    progress.certainty ? h("p", { class: "certainty" }, certaintyWords(progress.certainty)) : null,
    studio.ranking ? h("p", { class: "certainty" }, orderWords(progress.share_sure, answers)) : null,
    h("p", { class: verdict.early ? "lead" : "", "data-testid": "verdict" }, verdict.words),
    !verdict.early && curve.length > 1
      ? h(
          "figure",
          { class: "curve-block" },
          curvePicture(curve),
          h(
            "figcaption",
            {},
            `The band is the interval of ${percent(0.95)}.${dashed} Only questions drawn at random count here, about one in seven, each judged before it was learned from.`,
          ),
        )
      : h(
          "p",
          { class: "lead" },
          "About one question in seven is drawn at random, and judged before it is learned from. The learning curve is over these alone.",
        ),
    consistency.n ? h("p", {}, consistencyWords(consistency)) : null,
    wrong === undefined || !answers
      ? null
      : h("p", {}, `Estimated share of answers that do not fit the groups: ${percent(wrong)}.`),
    whoAnswered(progress.people, progress.machines, progress.audits_due),
    studio.finished ? h("section", { class: "hint stop" }, h("h3", {}, "Nothing is left to ask")) : null,
    hint && !studio.finished
      ? h(
          "section",
          { class: `hint${hint.stop ? " stop" : ""}` },
          h("h3", {}, hint.stop ? "You could stop here" : "Going on still pays"),
          h(
            "ul",
            {},
            hint.reasons.map((/** @type {string} */ reason) => h("li", {}, reason)),
          ),
          hint.cost && !progress.certainty ? h("p", {}, hint.cost) : null,
        )
      : null,
    leastSure(progress.least_sure, studio),
  ];
}
