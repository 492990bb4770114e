// The page as a whole: who is let in, what the keys and buttons do, and what each frame of the socket changes.

const STOP_WITHIN = 5000; // milliseconds

const app = {
  talk: null,
  list: null,
  line: null,

  async start() {
    translate(document);
    applyTheme();
    this.talk = new Talk(document.body.dataset.instance, { onstate: () => this.drawState() });
    this.list = new Sessions({ onopen: (id, message) => this.open(id, message), onerror: (error) => this.report(error) });
    bindControls();
    if (await enter()) await this.run();
  },

  /** Show the conversations and keep the line. Comes again after each login. */
  async run() {
    $("login").hidden = true;
    $("app").hidden = false;
    this.line?.close();
    this.line = new Line({
      onframe: (frame) => this.hear(frame),
      onopen: () => this.connected(),
      onlost: () => this.disconnected(),
    });
    await this.restore().catch((error) => this.report(error));
    this.drawState();
    this.line.connect();
    if (matchMedia("(pointer: fine)").matches) $("text").focus();
  },

  /** What a reload must not lose: the open conversation, and words that were not acknowledged. */
  async restore() {
    const waiting = unsent.all();
    for (const frame of waiting) this.talk.liveOf(frame.chat).addSaid(frame, false);
    const named = /^#s=(.+)$/.exec(location.hash)?.[1] ?? waiting.at(-1)?.session;
    if (named) await this.talk.open(decodeURIComponent(named)).catch((error) => this.report(error));
    else if (waiting.length) this.talk.begin(waiting.at(-1).chat);
  },

  connected() {
    $("status").hidden = true;
    for (const live of this.talk.lives.values()) live.stopping = null;
    this.reread();
  },

  async disconnected() {
    $("status").hidden = false;
    const refused = await call("GET", query("api/sessions", { limit: 1 })).then(() => false, (error) => error.status === 401);
    if (refused) askForSecret();
    return !refused;
  },

  /** Take over what the store says now. */
  reread() {
    this.talk.refresh().catch((error) => this.report(error));
    this.list.load().catch((error) => this.report(error));
  },

  hear(frame) {
    if (frame.t === "ack") this.acknowledged(frame);
    else if (frame.t === "error") this.refused(frame);
    else {
      const here = this.talk.hear(frame);
      if (frame.t === "answer") this.answered(frame, here);
    }
  },

  acknowledged({ id }) {
    unsent.remove(id);
    for (const live of this.talk.lives.values()) {
      live.acknowledge(id);
      if (live.stopping === `m:${id}`) setTimeout(() => this.stopped(live, id), STOP_WITHIN);
    }
  },

  /** A stop that nobody answers has stopped nothing, or all there was. */
  stopped(live, id) {
    if (live.stopping !== `m:${id}`) return;
    live.halt();
    this.talk.changed();
  },

  refused({ id, message }) {
    unsent.remove(id);
    for (const live of this.talk.lives.values()) if (live.stopping === `m:${id}`) live.stopping = null;
    const known = [...this.talk.lives.values()].find((live) => live.said.some((said) => said.id === id));
    if (!known) { toast(message); return; }
    known.fail(id, message, (text) => this.say(text));
    this.talk.changed();
  },

  /** The store now holds the answer with its tools; a first answer also tells which session this chat became. */
  async answered({ session }, here) {
    if (!here) this.list.notice(session);
    try {
      if (here && session && this.talk.session?.id !== session) await this.follow(session);
      else if (here) await this.talk.refresh();
      await this.list.load();
    } catch (error) {
      this.report(error);
    }
  },

  async follow(id) {
    const chat = this.talk.chat;
    const { session, rows } = await transcript(id, this.talk.session ? this.talk.last : 0);
    if (this.talk.chat !== chat) return;
    if (this.talk.session && this.talk.session.conversation !== session.conversation) {
      await this.talk.open(id);
    } else {
      this.talk.session = session;
      this.talk.add(rows);
    }
    this.talk.changed();
  },

  say(text) {
    const { chat, session, live } = this.talk;
    const frame = { t: "say", id: freshId(), chat, session: chat.startsWith("s-") ? session?.id ?? null : null, text };
    live.addSaid(frame, false);
    this.talk.toEnd();
    this.talk.changed();
    this.line.say(frame);
  },

  stop() {
    const id = freshId();
    const { live } = this.talk;
    if (!live.busy || !this.line.send({ t: "stop", id, chat: this.talk.chat })) return;
    live.stopping = `m:${id}`;
    this.drawState();
  },

  async open(id, message) {
    closeDrawer();
    try {
      await this.talk.open(id);
      if (message) this.talk.reveal(message);
      else if (matchMedia("(pointer: fine)").matches) $("text").focus();
    } catch (error) {
      this.report(error);
    }
  },

  newChat() {
    closeDrawer();
    this.list.clear();
    this.talk.begin(freshId());
    $("text").focus();
  },

  /** Bring header, composer and address in line with the conversation that is open. */
  drawState() {
    if (!this.list) return; // the very first conversation is begun before there is a list
    const { session, live } = this.talk;
    const name = session ? nameOf(session) : say("newChat");
    $("title").textContent = name;
    document.title = session ? `${name} · Hermes` : "Hermes";
    $("badge").hidden = !session;
    $("badge").textContent = session?.source ?? "";
    $("more").hidden = !session;
    $("stop").hidden = !live.busy;
    $("stop").disabled = live.stopping !== null;
    $("send").disabled = $("text").value.trim() === "";
    const fragment = session ? `#s=${encodeURIComponent(session.id)}` : "";
    if (location.hash !== fragment) history.replaceState(null, "", location.pathname + location.search + fragment);
    if (this.list.current !== (session?.conversation ?? null)) this.list.select(session?.conversation ?? null);
  },

  /** Say what went wrong; a login that has run out is asked for again, a lost line says so itself. */
  report(error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) askForSecret();
    else if (error.status !== 0 || $("status").hidden) toast(error.message);
  },
};

// --- login ----------------------------------------------------------------------------------------------------------

/** True once the owner is known: by the code in the address, by the cookie, or else after the form. */
async function enter() {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (code) await call("POST", "login", { code: decodeURIComponent(code) });
    await call("GET", query("api/sessions", { limit: 1 }));
    return true;
  } catch (error) {
    if (error.status === 0) return true; // the gateway is away: the line waits for it
    if (error.status !== 401) askForSecret(error.message);
    else askForSecret(code ? say("codeUsed") : "");
    return false;
  }
}

function askForSecret(refusal = "") {
  app.line?.close();
  $("app").hidden = true;
  $("login").hidden = false;
  $("refusal").textContent = refusal;
  $("secret").focus();
}

async function logIn(event) {
  event.preventDefault();
  try {
    await call("POST", "login", { secret: $("secret").value.trim() });
    $("secret").value = "";
    $("refusal").textContent = "";
    await app.run();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    $("refusal").textContent = error.status === 401 ? say("secretWrong") : error.message;
    $("secret").select();
  }
}

async function logOut() {
  await call("POST", "logout").catch((error) => app.report(error));
  history.replaceState(null, "", location.pathname);
  location.reload();
}

// --- small things ---------------------------------------------------------------------------------------------------

let toastTimer = 0;
function toast(message) {
  $("toast").textContent = message;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

function applyTheme() {
  const chosen = memory.getItem("hermes.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

function toggleTheme() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  memory.setItem("hermes.theme", dark === "dark" ? "light" : "dark");
  applyTheme();
}

function openDrawer() {
  document.body.classList.add("drawer");
  $("drawer").setAttribute("aria-expanded", "true");
  $("search").focus({ preventScroll: true });
}

function closeDrawer() {
  document.body.classList.remove("drawer");
  $("drawer").setAttribute("aria-expanded", "false");
}

function showMenu(shown) {
  const archived = app.talk.session?.archived;
  $("menu").hidden = !shown;
  $("more").setAttribute("aria-expanded", String(shown));
  $("menu").querySelector("[data-action=archive]").hidden = archived;
  $("menu").querySelector("[data-action=unarchive]").hidden = !archived;
  if (shown) $("menu").querySelector("button:not([hidden])").focus();
}

function walkMenu(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const items = [...$("menu").querySelectorAll("button:not([hidden])")];
  items.at((items.indexOf(document.activeElement) + by) % items.length).focus();
}

// --- what can be done with the open conversation --------------------------------------------------------------------

const ACTIONS = {
  rename() {
    $("title").hidden = true;
    $("rename").hidden = false;
    $("rename").value = app.talk.session.title ?? "";
    $("rename").focus();
    $("rename").select();
  },
  async archive() {
    await call("POST", `api/sessions/${app.talk.session.id}/archive`);
    await Promise.all([app.talk.refresh(), app.list.load()]);
  },
  async unarchive() {
    await call("POST", `api/sessions/${app.talk.session.id}/unarchive`);
    await Promise.all([app.talk.refresh(), app.list.load()]);
  },
  async delete() {
    if (!(await confirmed())) return;
    await call("DELETE", `api/sessions/${app.talk.session.id}`);
    app.newChat();
    await app.list.load();
  },
};

async function act(event) {
  const action = event.target.closest("[data-action]")?.dataset.action;
  if (!action) return;
  showMenu(false);
  try {
    await ACTIONS[action]();
  } catch (error) {
    app.report(error);
  }
}

function confirmed() {
  const dialog = $("confirm");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

/** Leave the title's field, and keep what it holds when `keep`. */
async function endRename(keep) {
  if ($("rename").hidden) return;
  $("rename").hidden = true;
  $("title").hidden = false;
  const title = $("rename").value.trim();
  if (!keep || title === (app.talk.session.title ?? "")) return;
  try {
    await call("POST", `api/sessions/${app.talk.session.id}/rename`, { title });
    await Promise.all([app.talk.refresh(), app.list.load()]);
  } catch (error) {
    app.report(error);
  }
}

// --- composer -------------------------------------------------------------------------------------------------------

function grow() {
  const text = $("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`; // the style sheet caps it at eight lines
  app.drawState();
}

function submit(event) {
  event?.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  $("text").value = "";
  grow();
  app.say(text);
}

/** Enter sends, unless it chooses a word in an input method. */
function typed(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  submit(event);
}

// --- keys and buttons -----------------------------------------------------------------------------------------------

/** Esc closes the topmost thing; with nothing open it stops the turn. */
function escape() {
  if ($("confirm").open) return; // the dialog closes itself
  if (!$("menu").hidden) { showMenu(false); $("more").focus(); }
  else if (!$("rename").hidden) endRename(false);
  else if (app.list.searching) app.list.clear();
  else if (document.body.classList.contains("drawer")) closeDrawer();
  else app.stop();
}

function shortcut(event) {
  if (event.isComposing || $("app").hidden) return;
  if (event.key === "Escape") escape();
  else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openSearch(event);
  else if (event.altKey && event.code === "KeyN") { event.preventDefault(); app.newChat(); }
}

function openSearch(event) {
  event.preventDefault();
  if (matchMedia("(max-width: 700px)").matches) openDrawer();
  $("search").focus();
  $("search").select();
}

function bindControls() {
  const clicks = {
    theme: toggleTheme, logout: logOut, "new-chat": () => app.newChat(), drawer: openDrawer, shade: closeDrawer,
    more: () => showMenu($("menu").hidden), menu: act, stop: () => app.stop(),
  };
  for (const [id, handler] of Object.entries(clicks)) $(id).addEventListener("click", handler);
  $("search-key").textContent = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K";
  $("login").addEventListener("submit", logIn);
  $("composer").addEventListener("submit", submit);
  $("text").addEventListener("input", grow);
  $("text").addEventListener("keydown", typed);
  $("menu").addEventListener("keydown", walkMenu);
  $("rename").addEventListener("blur", () => endRename(true));
  $("rename").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) endRename(true); });
  addEventListener("keydown", shortcut);
  addEventListener("hashchange", () => { if (location.hash.startsWith("#code=")) location.reload(); });
  addEventListener("click", (event) => { if (!$("menu").hidden && !event.target.closest(".menu")) showMenu(false); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !$("app").hidden) app.reread(); });
}

app.start();
