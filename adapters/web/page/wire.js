// The two ways to the gateway: the JSON API for what is stored, and one socket for what happens now.

/** The API refused, or (`status` 0) could not be reached. */
class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(method, path, body) {
  const init = { method, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) Object.assign(init, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const response = await fetch(path, init).catch(() => { throw new ApiError(0, say("offline")); });
  const text = await response.text().catch(() => { throw new ApiError(0, say("offline")); });
  const answer = parsed(text);
  if (!response.ok) throw new ApiError(response.status, answer?.error?.message ?? say("failed", response.status));
  return answer;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A name that nobody else has. `crypto.randomUUID` would want https, which a home network rarely has. */
const freshId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const query = (path, values) => `${path}?${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined))}`;

/** All rows of a conversation after the row `after`, and the session as it stands. */
async function transcript(session, after = 0) {
  const rows = [];
  for (;;) {
    const part = await call("GET", query(`api/sessions/${encodeURIComponent(session)}/messages`, { after, limit: 500 }));
    rows.push(...part.messages);
    if (!part.more || part.messages.length === 0) return { session: part.session, rows };
    after = part.messages.at(-1).id;
  }
}

/** Small things that outlive a reload. A browser that forbids storage keeps them for the page's life. */
const memory = (() => {
  try {
    localStorage.setItem("hermes.probe", "");
    localStorage.removeItem("hermes.probe");
    return localStorage;
  } catch {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key),
      key: (index) => [...kept.keys()][index], get length() { return kept.size; },
    };
  }
})();

/** Messages that the gateway has not acknowledged: one entry each, so that pages side by side do not overwrite each other. */
const unsent = {
  prefix: "hermes.unsent.",
  add(frame) { memory.setItem(this.prefix + frame.id, JSON.stringify({ ...frame, at: Date.now() })); },
  remove(id) { memory.removeItem(this.prefix + id); },
  all() {
    const keys = Array.from({ length: memory.length }, (_, index) => memory.key(index)).filter((key) => key.startsWith(this.prefix));
    return keys.map((key) => parsed(memory.getItem(key))).filter(Boolean).sort((one, other) => one.at - other.at);
  },
};

const FIRST_WAIT = 500; // milliseconds
const LONGEST_WAIT = 15_000;
const PING_EVERY = 25_000;
const PONG_WITHIN = 10_000;

/** The socket: comes back by itself until it is closed, and sends what was not acknowledged again. */
class Line {
  /** `onframe(frame)`, `onopen()`, `onlost()`: asked before each new attempt, false to give up. */
  constructor({ onframe, onopen, onlost }) {
    Object.assign(this, { onframe, onopen, onlost, wait: FIRST_WAIT, closed: false });
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
  }

  connect() {
    const address = new URL("ws", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.hash = address.search = "";
    this.socket = new WebSocket(address);
    this.socket.onopen = () => this.opened();
    this.socket.onmessage = (event) => this.heard(parsed(event.data));
    this.socket.onclose = () => this.lost();
  }

  opened() {
    this.wait = FIRST_WAIT;
    this.pinging = setInterval(() => this.ping(), PING_EVERY);
    for (const frame of unsent.all()) this.socket.send(JSON.stringify(frame));
    this.onopen();
  }

  heard(frame) {
    clearTimeout(this.deaf);
    if (frame && frame.t !== "pong") this.onframe(frame);
  }

  ping() {
    this.send({ t: "ping" });
    clearTimeout(this.deaf);
    this.deaf = setTimeout(() => this.drop(), PONG_WITHIN);
  }

  /** A dead connection may take minutes to say so: do not wait for it. */
  drop() {
    this.socket.onclose = null;
    this.socket.close();
    this.lost();
  }

  async lost() {
    clearInterval(this.pinging);
    clearTimeout(this.deaf);
    if (this.closed || !(await this.onlost())) return;
    this.retry = setTimeout(() => this.hurry(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  /** Try now if an attempt is waiting for its time. */
  hurry() {
    if (!this.retry) return;
    clearTimeout(this.retry);
    this.retry = null;
    this.connect();
  }

  /** Send a frame now, or not at all: false when the line is down. */
  send(frame) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Send words that must not be lost. */
  say(frame) {
    unsent.add(frame);
    this.send(frame);
  }

  close() {
    this.closed = true;
    this.socket?.close();
    clearTimeout(this.retry);
    this.retry = null;
  }
}
