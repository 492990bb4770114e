// The conversation in the middle: stored rows first, then what is live and not read from the store yet.

/** What a chat says beyond its stored rows. Kept while another chat is open, so that coming back shows it. */
class Live {
  constructor(chat) {
    this.chat = chat;
    this.node = el("div", { className: "live" });
    this.said = []; // { id, text, node, waits }
    this.turns = []; // { answers, node, view, final }
    this.keys = new Set();
    this.stopping = null;
  }

  get writing() { return this.turns.some((turn) => !turn.final); }

  get busy() { return this.writing || this.said.some((said) => said.waits && !said.text.startsWith("/")); }

  /** Show words of the person. `sent` once they are safe with the gateway. */
  addSaid({ id, text }, sent) {
    if (this.said.some((said) => said.id === id)) return;
    const node = userBubble(text, Date.now() / 1000);
    this.said.push({ id, text, node, waits: true });
    this.node.append(node);
    if (!sent) node.classList.add("unsent");
  }

  acknowledge(id) {
    this.said.find((said) => said.id === id)?.node.classList.remove("unsent");
  }

  fail(id, message, again) {
    const said = this.said.find((one) => one.id === id);
    if (!said) return;
    said.waits = false;
    said.node.classList.remove("unsent");
    const button = el("button", { type: "button", textContent: say("again") });
    button.addEventListener("click", () => {
      this.said = this.said.filter((one) => one !== said);
      said.node.remove();
      again(said.text);
    });
    said.node.append(el("p", { className: "refused", role: "alert" }, `${message} `, button));
  }

  /** The answer that is being written to `answers`; a new one where the last is final. */
  turnOf(answers) {
    const open = this.turns.find((turn) => turn.answers === answers && !turn.final);
    if (open) return open;
    const body = el("div", { className: "prose" });
    const tools = el("div", { className: "tools" });
    const node = el("article", { className: "answer writing" }, tools, body, el("span", { className: "dots", role: "img", ariaLabel: say("thinking") }));
    // A question that this page does not hold itself (it was loaded in the middle of the turn) is in the store already.
    const questioned = !this.said.some((said) => `m:${said.id}` === answers);
    const turn = { answers, node, tools, view: new MarkdownView(body), text: "", final: false, questioned };
    // Below its question, and below what was answered to it before.
    const above = this.turns.findLast((one) => one.answers === answers) ?? this.said.find((said) => `m:${said.id}` === answers);
    if (above) above.node.after(node);
    else this.node.append(node);
    this.turns.push(turn);
    return turn;
  }

  delta({ answers, text }) {
    const turn = this.turnOf(answers);
    turn.text += text;
    turn.node.classList.add("worded");
    turn.view.append(text);
  }

  tool({ answers, name, done }) {
    const turn = this.turnOf(answers);
    const open = [...turn.tools.children].find((chip) => chip.dataset.name === name && chip.classList.contains("working"));
    if (done) open?.classList.remove("working");
    else turn.tools.append(toolChip(name));
  }

  answer({ answers, key, markdown }) {
    if (this.keys.has(key)) return;
    this.keys.add(key);
    const turn = this.turnOf(answers);
    if (turn.text !== markdown) turn.view.replace(markdown);
    this.finish(turn);
    this.drop(this.turns.filter((one) => one.questioned && !one.final && isBlank(one))); // this answer was theirs too
    for (const said of this.said) if (`m:${said.id}` === answers) said.waits = false;
    if (this.stopping === answers) this.halt();
    this.stopping = null; // the stopped turn has said so itself
  }

  finish(turn) {
    turn.final = true;
    turn.node.classList.remove("writing");
    for (const chip of turn.tools.children) chip.classList.remove("working");
  }

  /** The person stopped it: nothing more is waited for. */
  halt() {
    this.stopping = null;
    for (const turn of this.turns) if (!turn.final) this.finish(turn);
    for (const said of this.said) said.waits = false;
  }

  drop(turns) {
    for (const turn of turns) turn.node.remove();
    this.turns = this.turns.filter((turn) => !turns.includes(turn));
  }

  /** Take away what `rows` of the store now hold. A question may be there before its answer is: it is still worked on. */
  fold(rows) {
    let from = 0;
    for (const said of [...this.said]) {
      const index = rows.findIndex((row, at) => at >= from && row.role === "user" && row.content.trim() === said.text.trim());
      if (index < 0) continue;
      from = index + 1;
      if (said.waits && !this.turns.some((turn) => turn.answers === `m:${said.id}`)) this.turnOf(`m:${said.id}`);
      this.said = this.said.filter((one) => one !== said);
      said.node.remove();
      this.foldTurns(`m:${said.id}`, rows.slice(from));
    }
    for (const turn of [...this.turns]) {
      if (turn.questioned) this.foldTurns(turn.answers, rows);
    }
  }

  foldTurns(answers, later) {
    const turns = this.turns.filter((turn) => turn.answers === answers);
    for (const turn of turns) turn.questioned = true; // its question is stored: the next rows hold its answer
    if (later.some((row) => row.role === "assistant" && row.tool_calls.length === 0)) this.drop(turns);
  }
}

const isBlank = (turn) => turn.text === "" && turn.tools.childElementCount === 0;

function userBubble(text, at, name = "") {
  const bubble = el("div", { className: "bubble", textContent: text });
  const node = el("article", { className: "question", title: MOMENT.format(at * 1000) });
  if (name) node.append(el("span", { className: "sender", textContent: name }));
  node.append(bubble, el("span", { className: "note", textContent: say("waiting") }));
  return node;
}

function toolChip(name) {
  const chip = el("div", { className: "chip working" }, icon("tool"), el("span", { textContent: name }));
  chip.dataset.name = name;
  return chip;
}

/** A stored tool call: name first, what went in and came out on demand. */
function toolDetails(name) {
  return el("details", { className: "tool" }, el("summary", {}, icon("tool"), el("span", { textContent: name }), icon("chevron")));
}

function addPart(details, label, text) {
  details.append(el("h3", { textContent: say(label) }), el("pre", { tabIndex: 0, textContent: text }));
}

function prettyJson(text) {
  const value = parsed(text);
  return value === null ? text : JSON.stringify(value, null, 2);
}

const HEARD = {
  said: (live, frame) => live.addSaid(frame, true),
  delta: (live, frame) => live.delta(frame),
  tool: (live, frame) => live.tool(frame),
  answer: (live, frame) => live.answer(frame),
};

/** The scrolling column: which conversation it shows, and whether it follows the end. */
class Talk {
  constructor(instance, { onstate }) {
    Object.assign(this, { instance, onstate });
    this.lives = new Map();
    this.following = true;
    const scroller = $("scroller");
    scroller.addEventListener("scroll", () => {
      this.following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
      $("jump").hidden = this.following;
    }, { passive: true });
    new ResizeObserver(() => this.follow()).observe($("log"));
    new ResizeObserver(() => this.follow()).observe(scroller);
    $("jump").addEventListener("click", () => this.toEnd());
    this.begin(freshId());
  }

  get live() { return this.liveOf(this.chat); }

  liveOf(chat) {
    if (!this.lives.has(chat)) this.lives.set(chat, new Live(chat));
    return this.lives.get(chat);
  }

  /** An empty conversation. */
  begin(chat) {
    this.show({ chat, session: null }, []);
  }

  /** The chat through which `session` goes on: its own if it is one of this page's and still open, else one made for it. */
  chatOf(session) {
    const own = session.source === this.instance && session.ended_at === null && session.chat_id;
    return own || `s-${session.conversation}`;
  }

  async open(id) {
    const { session, rows } = await transcript(id);
    this.show({ chat: this.chatOf(session), session }, rows);
  }

  show({ chat, session }, rows) {
    Object.assign(this, { chat, session, last: 0, calls: new Map() });
    $("log").replaceChildren(this.stored = el("div", { className: "stored" }), this.live.node);
    this.add(rows);
    this.toEnd();
    this.changed();
  }

  /** Read what came since, after an answer or a lost line. */
  async refresh() {
    const { chat, session } = this;
    if (!session) return;
    const fresh = await transcript(session.id, this.last);
    if (this.chat !== chat || this.session?.conversation !== fresh.session.conversation) return;
    this.session = fresh.session;
    this.add(fresh.rows);
    this.changed();
  }

  add(rows) {
    const fresh = rows.filter((row) => row.id > this.last);
    this.live.fold(fresh);
    for (const row of fresh) {
      this.addRow(row);
      this.last = row.id;
    }
    this.follow();
  }

  addRow(row) {
    if (row.role === "tool") return this.addResult(row);
    if (row.role === "user") return this.put(row, userBubble(row.content, row.at, row.sender_name === "Owner" ? "" : row.sender_name ?? ""));
    const node = el("article", { className: "answer" });
    const prose = el("div", { className: "prose" });
    new MarkdownView(prose).append(row.content);
    if (row.content.trim()) node.append(prose);
    for (const call of row.tool_calls) node.append(this.addCall(call));
    return this.put(row, node);
  }

  addCall(call) {
    const details = toolDetails(call.name);
    addPart(details, "arguments", prettyJson(call.arguments));
    this.calls.set(call.id, details);
    return details;
  }

  addResult(row) {
    let details = this.calls.get(row.tool_call_id);
    if (!details) this.put(row, el("article", { className: "answer" }, details = toolDetails(row.tool_name ?? "")));
    details.dataset.message = row.id;
    addPart(details, "result", prettyJson(row.content));
  }

  put(row, node) {
    node.dataset.message = row.id;
    this.stored.append(node);
  }

  /** Show a frame of the socket; true when it belongs to the chat that is open. */
  hear(frame) {
    HEARD[frame.t]?.(this.liveOf(frame.chat), frame);
    this.changed();
    return frame.chat === this.chat;
  }

  changed() {
    $("empty").hidden = Boolean(this.stored.firstChild || this.live.node.firstChild);
    $("log").setAttribute("aria-busy", String(this.live.busy));
    this.live.node.classList.toggle("thinking", this.live.busy && !this.live.writing);
    this.follow();
    this.onstate();
  }

  follow() {
    if (this.following) $("scroller").scrollTop = $("scroller").scrollHeight;
  }

  toEnd() {
    this.following = true;
    $("jump").hidden = true;
    this.follow();
  }

  /** Bring a stored row into sight, as a search hit does. */
  reveal(message) {
    const node = this.stored.querySelector(`[data-message="${CSS.escape(String(message))}"]`);
    if (!node) return;
    this.following = false;
    if (node.localName === "details") node.open = true;
    node.scrollIntoView({ block: "center" });
    node.classList.add("found");
    setTimeout(() => node.classList.remove("found"), 2500);
  }
}
