// @ts-check
/** What tells a text from the others beside it: its key words, and the place where they begin. */

const LEAST = 4;
const FEW = 3;
/** Letters that are kept before the first key word. */
const BEFORE = 8;

/** @param {string} text @returns {Map<string, number>} words in lower case and how often each occurs */
function counts(text) {
  const found = new Map();
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}’'-]*/gu) ?? [])
    if (word.length >= LEAST) found.set(word, (found.get(word) ?? 0) + 1);
  return found;
}

/**
 * The words of each text that few of the others have, those that it uses most first.
 * @param {string[]} texts
 * @returns {string[][]}
 */
export function keyWords(texts) {
  const all = texts.map(counts);
  const weight = (/** @type {string} */ word) => Math.log(texts.length / all.filter((each) => each.has(word)).length);
  return all.map((own) => {
    const weighed = [...own].map(
      ([word, count]) => /** @type {[string, number]} */ ([word, (1 + Math.log(count)) * weight(word)]),
    );
    return weighed
      .filter(([, value]) => value > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, FEW)
      .map(([word]) => word);
  });
}

/**
 * A text from shortly before the first of its key words on; what comes before is the same in others.
 * @param {string} text @param {string[]} words
 */
export function fromKeyWord(text, words) {
  const lower = text.toLowerCase();
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0));
  if (!Number.isFinite(first) || first <= 2 * BEFORE) return text;
  const start = text.lastIndexOf(" ", first - BEFORE) + 1;
  return start > 0 ? `… ${text.slice(start)}` : text;
}
