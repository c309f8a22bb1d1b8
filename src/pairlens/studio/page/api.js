// @ts-check
/**
 * Talking to the server: JSON both ways, our own header on every change, errors with words. In a notebook the same requests
 * go to the kernel.
 */

export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status 0 if the server did not answer at all
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  /** Whether the studio does not know this page, or is another one than that of the page. */
  get strange() {
    return this.status === 401 || this.status === 410;
  }

  /** Whether the same request may well succeed later. */
  get passing() {
    return this.status === 0 || this.status === 503 || this.status === 507 || this.status === 500;
  }
}

/** @typedef {(topic: string, content: any) => void} Heard */
/**
 * @typedef {object} Line to the kernel of a notebook
 * @property {(path: string, options?: RequestInit) => Promise<Response>} fetch
 * @property {(heard: Heard, connected: (connected: boolean) => void) => void} listen
 * @property {(rows: number[]) => void} selected tells which rows were drawn round
 */

let study = "";
/** @type {Line | null} */
let kernel = null;

/** From now on all requests take this line. @param {Line} line */
export function speakBy(line) {
  kernel = line;
}

/** The line to the kernel; null where there is a server. */
export function line() {
  return kernel;
}

/** From now on this page speaks of these rows and this store alone. @param {string} name */
export function speakOf(name) {
  study = name;
}

/**
 * @param {string} path
 * @param {RequestInit & {headers?: Record<string, string>}} [options]
 * @returns {Promise<Response>}
 */
async function request(path, options) {
  let response;
  try {
    const headers = { ...options?.headers, ...(study ? { "x-pairlens-study": study } : {}) };
    response = await (kernel?.fetch ?? fetch)(path, { credentials: "same-origin", ...options, headers });
  } catch {
    throw new ApiError("the studio does not answer", 0);
  }
  if (response.ok) return response;
  let words = `the studio answered ${response.status}`;
  try {
    words = (await response.json()).error ?? words;
  } catch {
    // Not JSON: the status says enough.
  }
  throw new ApiError(words, response.status);
}

/** @param {string} name @returns {Promise<any>} */
export async function get(name) {
  return (await request(`/api/${name}`)).json();
}

/** @param {string} name @returns {Promise<ArrayBuffer>} */
export async function getBinary(name) {
  return (await request(`/api/${name}`)).arrayBuffer();
}

/** Where the browser finds a file: at the server, or in what the kernel has sent. @param {string} name @returns {Promise<string>} */
export async function address(name) {
  return kernel ? URL.createObjectURL(await (await request(`/api/${name}`)).blob()) : `/api/${name}`;
}

/**
 * @param {string} name
 * @param {object} body
 * @returns {Promise<any>}
 */
export async function post(name, body) {
  const headers = { "content-type": "application/json", "x-pairlens": "1" };
  return (await request(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** An id that nobody else makes. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
