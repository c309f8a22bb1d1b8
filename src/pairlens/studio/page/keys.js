// @ts-check
/** Keys and what they do. The person may change them; a held key and a key pressed too soon do nothing. */

/** @typedef {"same"|"different"|"unsure"|"undo"|"left"|"right"|"equal"|"none"|"flag"|"review"|"map"|"help"} Action */

/** @type {Record<Action, string[]>} */
export const DEFAULT_KEYS = {
  same: ["s"],
  different: ["d"],
  unsure: [" "],
  undo: ["Backspace", "Ctrl+z"],
  left: ["ArrowLeft"],
  right: ["ArrowRight"],
  equal: ["ArrowDown", "ArrowUp"],
  none: ["0"],
  flag: ["f"],
  review: ["r"],
  map: ["m"],
  help: ["?"],
};

export const PAUSE = 250;

/** Actions that answer the question, and so must wait until it was seen. */
const ANSWERS = new Set(["same", "different", "unsure", "left", "right", "equal", "none", "group"]);

/** @typedef {{key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, repeat: boolean}} Press */

/** What a press is called: "s", "Ctrl+z", "ArrowLeft". @param {Press} press */
export function keyName(press) {
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  return press.ctrlKey || press.metaKey ? `Ctrl+${key}` : key;
}

/** How a key is written for people. @param {string} key */
export function keyLabel(key) {
  const names = /** @type {Record<string, string>} */ ({
    " ": "Space",
    ArrowLeft: "←",
    ArrowRight: "→",
    ArrowUp: "↑",
    ArrowDown: "↓",
    Backspace: "⌫",
  });
  return (
    names[key] ?? (key.length === 1 ? key.toUpperCase() : key.replace(/\+(.)$/, (_, last) => `+${last.toUpperCase()}`))
  );
}

/** What a key is called in `aria-keyshortcuts`. @param {string} key */
export function shortcut(key) {
  return key === " " ? "Space" : key.replace(/^Ctrl/, "Control");
}

export class Keys {
  /**
   * @param {Partial<Record<Action, string[]>>} [changed] what the person chose
   */
  constructor(changed = {}) {
    /** @type {Record<Action, string[]>} */
    this.chosen = { ...DEFAULT_KEYS, ...changed };
  }

  /**
   * What a press means; null for nothing.
   * @param {Press} press
   * @param {number} age milliseconds for which the question has been on the screen
   * @returns {{action: string, group?: string} | null}
   */
  meaning(press, age) {
    if (press.repeat || press.altKey) return null;
    const name = keyName(press);
    let action = Object.entries(this.chosen).find(([, names]) => names.includes(name))?.[0];
    let group;
    if (!action && /^[1-8]$/.test(name)) [action, group] = ["group", name];
    if (!action || (ANSWERS.has(action) && age < PAUSE)) return null;
    return group ? { action, group } : { action };
  }

  /**
   * Let a key do something; whatever it did before, it no longer does.
   * @param {Action} action
   * @param {string} name
   * @returns {Partial<Record<Action, string[]>>} what differs from the usual keys
   */
  assign(action, name) {
    for (const other of /** @type {Action[]} */ (Object.keys(this.chosen)))
      this.chosen[other] = this.chosen[other].filter((key) => key !== name);
    this.chosen[action] = [name];
    return Object.fromEntries(
      Object.entries(this.chosen).filter(
        ([a, names]) => names.join() !== DEFAULT_KEYS[/** @type {Action} */ (a)].join(),
      ),
    );
  }

  /** The first key of an action, for its button; empty if it has none. @param {Action} action */
  label(action) {
    const first = this.chosen[action]?.[0];
    return first === undefined ? "" : keyLabel(first);
  }
}
