// @ts-check
/** The studio in the output of a notebook's cell: requests go to the kernel, and the page is a shadow root. */

import { newId, speakBy } from "./api.js";
import { begin } from "./app.js";
import { within } from "./dom.js";

/**
 * @typedef {object} Model what anywidget gives
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(content: any) => void} send
 * @property {(name: string, run: (content: any, buffers: DataView[]) => void) => void} on
 * @property {(name: string, run: (content: any, buffers: DataView[]) => void) => void} off
 */

/** Milliseconds without a word of the kernel after which it is asked whether it is there; twice as many, and it is not. */
const SILENCE = 4000;

/** @param {Model} model */
function lineTo(model) {
  /** @type {Map<string, {since: number, resolve: (reply: Response) => void, reject: (error: Error) => void}>} */
  const pending = new Map();
  /** @type {{heard: import("./api.js").Heard, connected: (connected: boolean) => void} | null} */
  let listener = null;
  let lost = false;
  let last = 0;
  /** @param {(ask: string, since: number) => boolean} which */
  const giveUp = (which) => {
    for (const [ask, { since, reject }] of [...pending]) {
      if (!which(ask, since)) continue;
      pending.delete(ask);
      reject(new Error("no reply"));
    }
  };
  const receive = (/** @type {any} */ content, /** @type {DataView[]} */ buffers) => {
    last = performance.now();
    if (lost) {
      lost = false;
      listener?.connected(true);
    }
    if (content.topic) return listener?.heard(content.topic, content.content);
    const { reply, status, type, open } = content;
    // A message may get lost while a kernel is restarted: what it does not know is sent again.
    if (open) return giveUp((ask, since) => since < last - SILENCE && !open.includes(ask));
    const body = /** @type {any} */ (buffers?.[0] ?? null);
    pending.get(reply)?.resolve(new Response(body, { status, headers: { "content-type": type } }));
    pending.delete(reply);
  };
  const watch = setInterval(() => {
    const now = performance.now();
    if (![...pending.values()].some(({ since }) => since < now - SILENCE)) return;
    // It answers this whatever it computes, unless it runs a cell or is another one.
    if (now - last < 2 * SILENCE) return model.send({ ask: "" });
    lost = true;
    giveUp(() => true);
  }, SILENCE);
  model.on("msg:custom", receive);
  return {
    /** @type {import("./api.js").Line["fetch"]} */
    fetch: (path, options) =>
      new Promise((resolve, reject) => {
        if (!pending.size) last = performance.now();
        const ask = newId();
        pending.set(ask, { since: performance.now(), resolve, reject });
        model.send({ ask, path, method: options?.method ?? "GET", body: options?.body ?? "" });
      }),
    /** @type {import("./api.js").Line["listen"]} */
    listen: (heard, connected) => {
      listener = { heard, connected };
    },
    selected: (/** @type {number[]} */ rows) => {
      model.set("selected", rows);
      model.save_changes();
    },
    close: () => {
      clearInterval(watch);
      model.off("msg:custom", receive);
    },
  };
}

/** Whether the notebook is dark, by the colour of its letters: each has an attribute of its own for it. */
class Theme extends EventTarget {
  /** @param {HTMLElement} el @param {HTMLElement} host */
  constructor(el, host) {
    super();
    this.matches = false;
    let before = "";
    const look = () => {
      const colour = getComputedStyle(el).color;
      const [r, g, b] = (colour.match(/[\d.]+/g) ?? []).map(Number);
      if (!el.isConnected || colour === before) return;
      before = colour;
      this.matches = 0.3 * r + 0.6 * g + 0.1 * b > 128;
      host.style.colorScheme = this.matches ? "dark" : "light";
      this.dispatchEvent(new Event("change"));
    };
    this.observers = [new MutationObserver(look), new ResizeObserver(look)];
    for (const place of [document.documentElement, document.body])
      /** @type {MutationObserver} */ (this.observers[0]).observe(place, { attributes: true });
    /** @type {ResizeObserver} */ (this.observers[1]).observe(host);
  }

  close() {
    for (const observer of this.observers) observer.disconnect();
  }
}

/**
 * @param {{model: Model, el: HTMLElement}} context
 * @param {{html: string, css: string}} files
 * @returns {() => void} ends it
 */
export function render({ model, el }, { html, css }) {
  const host = document.createElement("div");
  const shadow = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(css);
  shadow.adoptedStyleSheets = [style];
  const laid = new DOMParser().parseFromString(html, "text/html");
  for (const part of laid.querySelectorAll(".skip, h1")) part.remove();
  shadow.append(...laid.body.children);
  // A click anywhere lets the keys of the studio count, and those of the notebook not: JupyterLab looks for the attribute.
  /** @type {HTMLElement} */ (shadow.querySelector(".screen")).tabIndex = -1;
  host.dataset.lmSuppressShortcuts = "true";
  host.style.setProperty("--height", `${model.get("height")}px`);
  for (const kind of ["keydown", "keypress", "keyup"])
    shadow.addEventListener(kind, (event) => event.stopPropagation());
  const theme = new Theme(el, host);
  const line = lineTo(model);
  el.replaceChildren(host);
  within(shadow, theme);
  speakBy(line);
  begin(() => (host.dataset.ready = "1"));
  return () => {
    theme.close();
    line.close();
    const canvas = /** @type {HTMLCanvasElement | null} */ (shadow.querySelector(".points"));
    canvas?.getContext("webgl2")?.getExtension("WEBGL_lose_context")?.loseContext();
  };
}
