// The left column: the list of conversations, and what a search finds in them.

const PAGE = 40;

class Sessions {
  /** `onopen(id, message?)` when one is chosen; `onerror(error)` when the API fails. */
  constructor({ onopen, onerror }) {
    Object.assign(this, { onopen, onerror, sessions: [], more: false, archived: false, current: null, unread: new Set(), seeking: 0 });
    this.node = $("sessions");
    $("archived").addEventListener("click", () => this.toggleArchived());
    $("search").addEventListener("input", () => this.soon());
    for (const node of [this.node, $("search")]) node.addEventListener("keydown", (event) => this.step(event));
    setInterval(() => this.tellTime(), 60_000);
  }

  get searching() { return $("search").value.trim() !== ""; }

  async load() {
    // As many as are shown already, so that "load more" does not fold up again.
    const limit = Math.max(PAGE, this.sessions.length);
    const part = await this.fetch({ limit });
    Object.assign(this, { sessions: part.sessions, more: part.more });
    this.draw();
  }

  async loadMore() {
    const part = await this.fetch({ limit: PAGE, before: this.sessions.at(-1).last_active });
    const known = new Set(this.sessions.map((session) => session.conversation));
    this.sessions.push(...part.sessions.filter((session) => !known.has(session.conversation)));
    this.more = part.more;
    this.draw();
  }

  fetch(values) {
    return call("GET", query("api/sessions", { ...values, archived: this.archived ? "true" : undefined }));
  }

  async toggleArchived() {
    this.archived = !this.archived;
    this.sessions = [];
    $("archived").setAttribute("aria-pressed", String(this.archived));
    $("archived").lastElementChild.textContent = say(this.archived ? "hideArchived" : "showArchived");
    await this.load().catch(this.onerror);
  }

  /** Mark which conversation is open. */
  select(conversation) {
    this.current = conversation;
    this.unread.delete(conversation);
    if (!this.searching) this.draw();
  }

  /** An answer came in a conversation that is not open. */
  notice(session) {
    const known = this.sessions.find((one) => one.id === session);
    if (known && known.conversation !== this.current) this.unread.add(known.conversation);
  }

  draw() {
    if (this.searching) return;
    const kept = document.activeElement?.dataset.conversation;
    const groups = [];
    for (const session of this.sessions) {
      const day = dayOf(session.last_active);
      if (groups.at(-1)?.day !== day) groups.push({ day, rows: [] });
      groups.at(-1).rows.push(this.row(session));
    }
    this.node.replaceChildren(...groups.map(({ day, rows }) => this.group(say(day), rows)));
    if (groups.length === 0) this.node.append(el("p", { className: "none", textContent: say("nothing") }));
    if (this.more) this.node.append(this.moreButton());
    if (kept) this.node.querySelector(`[data-conversation="${CSS.escape(kept)}"]`)?.focus();
  }

  group(heading, rows) {
    const list = el("ul", {}, ...rows.map((row) => el("li", {}, row)));
    return el("section", {}, el("h2", { textContent: heading }), list);
  }

  row(session) {
    const when = el("time", { textContent: ago(session.last_active), title: MOMENT.format(session.last_active * 1000) });
    when.dataset.at = session.last_active;
    const row = el("button", { className: "row" },
      el("span", { className: "name", textContent: nameOf(session) }),
      el("span", { className: "facts" }, badge(session), when));
    row.dataset.conversation = session.conversation;
    if (session.conversation === this.current) row.setAttribute("aria-current", "page");
    row.classList.toggle("unread", this.unread.has(session.conversation));
    row.addEventListener("click", () => this.onopen(session.id));
    return row;
  }

  moreButton() {
    const button = el("button", { className: "load-more", textContent: say("loadMore") });
    button.addEventListener("click", () => this.loadMore().catch(this.onerror));
    return button;
  }

  tellTime() {
    for (const node of this.node.querySelectorAll("time")) node.textContent = ago(Number(node.dataset.at));
  }

  /** Search once the typing pauses. */
  soon() {
    clearTimeout(this.pause);
    if (this.searching) this.pause = setTimeout(() => this.search().catch(this.onerror), 200);
    else this.draw();
  }

  async search() {
    const turn = ++this.seeking;
    const found = await call("GET", query("api/search", { q: $("search").value.trim() }));
    if (turn !== this.seeking || !this.searching) return; // a newer search is on its way
    const rows = found.hits.map((hit) => this.hit(hit));
    this.node.replaceChildren(...(rows.length ? [this.group(say("search"), rows)] : []));
    const note = found.partial ? say("partial") : rows.length ? "" : say("noHits");
    if (note) this.node.append(el("p", { className: "none", textContent: note }));
  }

  hit({ session, snippet, match_message_id: message }) {
    const row = el("button", { className: "row hit" },
      el("span", { className: "name", textContent: nameOf(session) }),
      el("span", { className: "snippet" }, ...highlighted(snippet)),
      el("span", { className: "facts" }, badge(session), el("time", { textContent: ago(session.last_active) })));
    row.addEventListener("click", () => this.onopen(session.id, message));
    return row;
  }

  clear() {
    $("search").value = "";
    this.draw();
  }

  /** Arrow keys walk the list, from the search box down and back. */
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.isComposing) return;
    const stops = [$("search"), ...this.node.querySelectorAll("button")];
    stops[stops.indexOf(document.activeElement) + by]?.focus();
    event.preventDefault();
  }
}

const nameOf = (session) => session.title || session.preview || say("untitled");

function badge(session) {
  return el("span", { className: "badge", textContent: session.source });
}

/** A snippet with its marks >>>…<<< as highlighted words. */
function highlighted(snippet) {
  return snippet.split(/>>>(?!>)([^]*?)<<</).map((part, index) => (index % 2 ? el("mark", { textContent: part }) : part));
}
