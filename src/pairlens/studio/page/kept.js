// @ts-check
/** What the browser keeps for the person, where it keeps anything. */

/** The browser's storage; null in a private window that has none. */
export function storage() {
  try {
    localStorage.setItem("pairlens.probe", "1");
    localStorage.removeItem("pairlens.probe");
    return localStorage;
  } catch {
    return null;
  }
}

/** @param {string} key */
export function kept(key) {
  try {
    return JSON.parse(storage()?.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {any} value */
export function keep(key, value) {
  storage()?.setItem(key, JSON.stringify(value));
}
