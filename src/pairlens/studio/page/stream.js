// @ts-check
/** What happens at the server, as it happens. One tab of a browser reads the stream and tells the others. */

import { line } from "./api.js";

const TOPICS = ["ready", "status", "map", "groups", "trouble"];

/**
 * Whether a status is not older than another, which may have come by another way. That of another run of the studio never
 * is: nothing of the run before comes after it.
 * @param {{run: string, order: number}} status @param {{run: string, order: number}} than
 */
export function isNew(status, than) {
  return status.run !== than.run || status.order >= than.order;
}

/**
 * @param {object} options
 * @param {string} options.study same for all tabs of this studio
 * @param {(topic: string, content: any) => void} options.heard
 * @param {(connected: boolean) => void} options.connected
 * @returns {(topic: string, content: any) => void} tells the other tabs
 */
export function listen({ study, heard, connected }) {
  const name = `pairlens/${study}`;
  const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(name) : null;
  if (channel)
    channel.onmessage = (event) =>
      event.data.topic === "connected" ? connected(event.data.content) : heard(event.data.topic, event.data.content);
  const tell = (/** @type {string} */ topic, /** @type {any} */ content) => channel?.postMessage({ topic, content });
  const read = () => {
    const source = new EventSource(`/api/events?study=${study}`);
    source.onopen = () => {
      connected(true);
      tell("connected", true);
    };
    source.onerror = () => {
      connected(false);
      tell("connected", false);
      // A refusal ends the stream for good; the page finds out the reason by its next request.
      if (source.readyState === EventSource.CLOSED) setTimeout(read, 3000);
    };
    for (const topic of TOPICS)
      source.addEventListener(topic, (event) => {
        const content = JSON.parse(/** @type {MessageEvent} */ (event).data);
        heard(topic, content);
        tell(topic, content);
      });
  };
  const kernel = line();
  if (kernel) kernel.listen(heard, connected);
  else if (channel && navigator.locks) navigator.locks.request(`${name}/stream`, () => new Promise(() => read()));
  else read();
  return tell;
}
