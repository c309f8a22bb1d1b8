// @ts-check
/**
 * What the person did and the server does not know yet. It is kept in the browser before it is sent, sent in order, and
 * forgotten only when the server has stored it; each event has an id, so that sending it twice stores it once.
 */

/** @typedef {{route: string, body: {id: string} & Record<string, any>}} Parcel */
/** @typedef {{getItem(key: string): string | null, setItem(key: string, value: string): void, removeItem(key: string): void, key(n: number): string | null, readonly length: number}} Keep */
/** @typedef {(reply: any, parcel: Parcel, left: number) => void} Delivered */
/** @typedef {(error: any, parcel: Parcel, left: number) => void} Failed */

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;

export class Outbox {
  /**
   * @param {object} options
   * @param {string} options.name what the parcels are kept under
   * @param {(route: string, body: object) => Promise<any>} options.send
   * @param {Keep | null} options.keep where parcels survive a reload
   * @param {Delivered} options.delivered
   * @param {Failed} options.refused the server will never take it
   * @param {Failed} options.waiting the server does not take it now
   * @param {(run: () => void, pause: number) => any} [options.later]
   */
  constructor({ name, send, keep, delivered, refused, waiting, later = (run, pause) => setTimeout(run, pause) }) {
    this.prefix = `${name}/`;
    this.send = send;
    this.keep = keep;
    this.delivered = delivered;
    this.refused = refused;
    this.waiting = waiting;
    this.later = later;
    this.sending = false;
    this.running = Promise.resolve();
    this.pause = FIRST_PAUSE;
    this.scheduled = false;
    /** @type {{key: string, parcel: Parcel}[]} */
    this.parcels = this.load();
    this.number = 0;
  }

  /** Parcels that an earlier visit left. */
  load() {
    const found = [];
    if (!this.keep) return [];
    for (let n = 0; n < this.keep.length; n++) {
      const key = this.keep.key(n);
      if (!key?.startsWith(this.prefix)) continue;
      try {
        found.push({ key, parcel: JSON.parse(this.keep.getItem(key) ?? "") });
      } catch {
        this.keep.removeItem(key);
      }
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  get length() {
    return this.parcels.length;
  }

  /** One more than that of any parcel that is kept, in other tabs too; the clock may be set back. */
  nextNumber() {
    for (let n = 0; n < (this.keep?.length ?? 0); n++) {
      const key = this.keep?.key(n);
      if (key?.startsWith(this.prefix))
        this.number = Math.max(this.number, Number.parseInt(key.slice(this.prefix.length), 10) || 0);
    }
    return ++this.number;
  }

  /** Keep a parcel, and send it as soon as may be. @param {string} route @param {Parcel["body"]} body */
  put(route, body) {
    const key = `${this.prefix}${this.nextNumber().toString().padStart(12, "0")}.${body.id}`;
    const parcel = { route, body };
    try {
      this.keep?.setItem(key, JSON.stringify(parcel));
    } catch {
      // The browser keeps nothing (private window, or full): the parcel is still sent, but does not survive a reload.
    }
    this.parcels.push({ key, parcel });
    return this.flush();
  }

  /** Take back the newest parcel, if it is not on its way. @param {string} route @returns {Parcel | null} */
  takeBack(route) {
    const last = this.parcels.at(-1);
    if (!last || last.parcel.route !== route || (this.sending && this.parcels.length === 1)) return null;
    this.parcels.pop();
    this.keep?.removeItem(last.key);
    return last.parcel;
  }

  /** Send all parcels, oldest first. The promise is kept when they are sent, or have to wait. */
  flush() {
    if (!this.sending) this.running = this.sendAll();
    return this.running;
  }

  async sendAll() {
    this.sending = true;
    try {
      while (this.parcels.length) {
        const { key, parcel } = this.parcels[0];
        let reply;
        try {
          reply = await this.send(parcel.route, parcel.body);
        } catch (error) {
          const failure = /** @type {{passing?: boolean, strange?: boolean}} */ (error);
          if (failure.passing || failure.strange) {
            this.waiting(error, parcel, this.parcels.length);
            if (failure.passing) this.retry();
            return;
          }
          this.forget(key);
          this.refused(error, parcel, this.parcels.length);
          continue;
        }
        this.pause = FIRST_PAUSE;
        this.forget(key);
        this.delivered(reply, parcel, this.parcels.length);
      }
    } finally {
      this.sending = false;
    }
  }

  /** @param {string} key */
  forget(key) {
    this.parcels = this.parcels.filter((kept) => kept.key !== key);
    this.keep?.removeItem(key);
  }

  retry() {
    if (this.scheduled) return;
    this.scheduled = true;
    this.later(() => {
      this.scheduled = false;
      this.flush();
    }, this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }
}
