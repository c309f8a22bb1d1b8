// @ts-check
/** How far the answers have come: the learning curve of audited questions, and a hint when to stop. */

import { counted, h, svg } from "./dom.js";

/** @typedef {{answers: number, auc: number, low: number, high: number, pca: number | null, pca_low: number | null, pca_high: number | null, n: number}} Point */

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
  const line = (/** @type {(point: Point) => number} */ value) => curve.map((point) => `${x(point.answers).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" ");
  const band = `${line((point) => point.low)} ${[...curve].reverse().map((point) => `${x(point.answers).toFixed(1)},${y(point.high).toFixed(1)}`).join(" ")}`;
  const ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1].filter((value) => value >= least);
  const text = (/** @type {number} */ left, /** @type {number} */ top, /** @type {string} */ words, /** @type {string} */ anchor = "end") => {
    const element = svg("text", { x: left, y: top, "text-anchor": anchor });
    element.textContent = words;
    return element;
  };
  const last = curve[curve.length - 1];
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "curve", role: "img", "aria-label": `Learning curve: after ${last.answers} answers ${last.auc.toFixed(2)}, interval ${last.low.toFixed(2)} to ${last.high.toFixed(2)}` },
    ...ticks.flatMap((value) => [svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(value), y2: y(value), class: "tick" }), text(LEFT - 6, y(value) + 4, value.toFixed(1))]),
    svg("polygon", { points: band, class: "band" }),
    ...(last.pca === null ? [] : [svg("polyline", { points: line((point) => point.pca ?? 0.5), class: "pca" })]),
    svg("polyline", { points: line((point) => point.auc), class: "own" }),
    text(LEFT, HIGH - 4, String(curve[0].answers), "start"),
    text(WIDE - 12, HIGH - 4, `${last.answers} answers`),
  );
}

/**
 * @param {any} progress
 * @param {number} answers
 * @param {boolean} finished whether nothing is left to ask
 * @returns {(Node | string | null)[]}
 */
export function progressContent(progress, answers, finished) {
  const { curve, hint, error_rate: wrong, placed, counts, consistency } = progress;
  const words = /** @type {Record<string, string>} */ ({ same: "same", different: "different", unsure: "can’t tell", placed: "placed", none: "none of these", left: "left", right: "right", equal: "equal" });
  const list = Object.entries(counts).map(([name, count]) => `${count} ${words[name] ?? name}`);
  const last = curve.at(-1);
  return [
    h("p", {}, `${counted(answers, "answer")}${list.length ? `: ${list.join(", ")}` : ""}.`, placed ? ` ${counted(placed, "row")} have a group.` : ""),
    curve.length > 1
      ? h("figure", { class: "curve-block" }, curvePicture(curve), h("figcaption", {}, last.pca === null
          ? "How often the order of two rows was foreseen, with its interval of 95 %."
          : "How well distance on the view tells “same” from “different” (0.5 is chance), with its interval of 95 %; the dashed line is PCA’s, which knows no answers.",
          " Only questions drawn at random count here, each judged before it was learned from."))
      : h("p", { class: "lead" }, "About one question in seven is drawn at random. After ten of them, as soon as the answers to them differ, a learning curve appears here, judged on these alone."),
    consistency.n ? h("p", {}, `Of ${counted(consistency.n, "comparison")} that came back with sides swapped, you answered ${Math.round(100 * consistency.share)} % as before: nothing learned from you can be better than that.`) : null,
    wrong === undefined || !answers ? null : h("p", {}, `Estimated share of answers that do not fit the groups: ${(100 * wrong).toFixed(0)} %.`),
    finished ? h("section", { class: "hint stop" }, h("h3", {}, "Nothing is left to ask")) : null,
    hint && !finished ? h("section", { class: `hint${hint.stop ? " stop" : ""}` }, h("h3", {}, hint.stop ? "You could stop here" : "Going on still pays"), h("ul", {}, hint.reasons.map((/** @type {string} */ reason) => h("li", {}, reason))), hint.cost ? h("p", {}, hint.cost) : null) : null,
  ];
}
