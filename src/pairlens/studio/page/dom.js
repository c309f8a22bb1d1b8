// @ts-check
/** Elements from plain values. Texts become text nodes, never markup. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, any>} [properties] `class`, `on…` listeners, `data-…` and `aria-…` attributes, others as attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
export function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * An element of an SVG picture.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...Node} children
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @typedef {{matches: boolean, addEventListener(kind: "change", run: () => void): void}} Darkness */

/** @type {{place: Document | ShadowRoot | null, dark: Darkness | null}} */
const here = { place: null, dark: null };

/** From now on the page is in a part of another one, which says whether it is dark. @param {ShadowRoot} place @param {Darkness} dark */
export function within(place, dark) {
  Object.assign(here, { place, dark });
}

/** What holds the page. @returns {Document | ShadowRoot} */
export function page() {
  return here.place ?? document;
}

/** Whether the page is dark, and when that changes. */
export function darkness() {
  return here.dark ?? matchMedia("(prefers-color-scheme: dark)");
}

/**
 * The element of this id, which is in the page.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = page().getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * A number and its noun: "1 answer", "2 answers".
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** A share in percent; the sign stays on the line of its number. @param {number} share */
export function percent(share) {
  return `${Math.round(100 * share)}\u00a0%`;
}

/** A name inside other words: one that is written from right to left does not change their order. @param {string} name */
export function apart(name) {
  return /[\u0590-\u08ff\ufb1d-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name;
}
