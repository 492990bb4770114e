// Markdown to DOM nodes. Text only ever becomes text nodes: raw HTML stays visible as it was written, links go to http, https and
// mailto, and pictures are links, so that nothing loads by itself.
//
// Blocks: a table of readers, each given the lines and a position; the first that answers { node, next } wins.
// Spans: a table of sticky patterns at a character. Every pattern is linear, and a closing mark that was once not found is not
// looked for again, so that a hostile line of 100 kB costs no more than a friendly one.

const DEEPEST = 12; // nested quotes, lists or emphasis; beyond, the marks are text

/** Markdown that grows at its end: only the last block is built anew. */
class MarkdownView {
  constructor(parent) {
    this.parent = parent;
    this.tail = "";
    this.open = null;
  }

  append(text) {
    this.tail += text;
    const lines = this.tail.split("\n");
    const blocks = blocksOf(lines, 0);
    if (blocks.length === 0) return;
    this.open?.remove();
    this.parent.append(...blocks.map((block) => block.node));
    const last = blocks.at(-1);
    this.open = last.node;
    this.tail = lines.slice(last.start).join("\n");
  }

  replace(text) {
    this.parent.replaceChildren();
    this.tail = "";
    this.open = null;
    this.append(text);
  }
}

function renderMarkdown(text) {
  const root = document.createElement("div");
  new MarkdownView(root).append(text);
  return root;
}

// --- blocks ---------------------------------------------------------------------------------------------------------

const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const ROW_MARK = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\]\s+/;
const BLANK = /^\s*$/;

const READERS = [readFence, readHeading, readRule, readTable, readQuote, readList, readParagraph];

/** The blocks of `lines`: [{ node, start }], in order. */
function blocksOf(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (BLANK.test(lines[at])) { at += 1; continue; }
    for (const reader of READERS) {
      const block = reader(lines, at, depth);
      if (!block) continue;
      blocks.push({ node: block.node, start: at });
      at = block.next;
      break;
    }
  }
  return blocks;
}

function readFence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const [, indent, mark, info] = open;
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], mark)) end += 1;
  const code = lines.slice(at + 1, end).map((line) => dedent(line, indent.length)).join("\n");
  return { node: codeBlock(code, info.trim().split(" ", 1)[0]), next: end + 1 };
}

function closes(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && text === mark[0].repeat(text.length) && !/^ {4}/.test(line);
}

function codeBlock(code, language) {
  const button = el("button", { type: "button", className: "copy", textContent: say("copy") });
  const body = el("code", { textContent: code });
  button.addEventListener("click", () => copy(button, body));
  return el("figure", { className: "code" },
    el("figcaption", {}, el("span", { textContent: language }), button),
    el("pre", { tabIndex: 0 }, body));
}

function readHeading(lines, at) {
  const match = HEADING.exec(lines[at]);
  if (!match) return null;
  const level = Math.min(match[1].length + 2, 6); // the page's own title and greeting are levels 1 and 2
  const text = (match[2] ?? "").trimEnd().replace(/(?:^|[ \t])#+$/, "");
  return { node: el(`h${level}`, {}, ...spansOf(text)), next: at + 1 };
}

function readRule(lines, at) {
  return RULE.test(lines[at]) ? { node: el("hr"), next: at + 1 } : null;
}

function readTable(lines, at) {
  const marks = lines[at + 1];
  if (!lines[at].includes("|") || marks === undefined || !ROW_MARK.test(marks)) return null;
  const heads = cellsOf(lines[at]);
  const sides = cellsOf(marks).map((mark) => `${mark.startsWith(":") ? "l" : ""}${mark.endsWith(":") ? "r" : ""}`);
  if (heads.length !== sides.length) return null;
  let next = at + 2;
  while (next < lines.length && lines[next].includes("|") && !BLANK.test(lines[next])) next += 1;
  const row = (name, cells) => el("tr", {}, ...sides.map((side, index) =>
    el(name, { className: { r: "right", lr: "middle" }[side] ?? "" }, ...spansOf(cells[index] ?? ""))));
  const body = lines.slice(at + 2, next).map((line) => row("td", cellsOf(line)));
  const table = el("table", {}, el("thead", {}, row("th", heads)), el("tbody", {}, ...body));
  return { node: el("div", { className: "table", tabIndex: 0 }, table), next };
}

function cellsOf(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/([^\\]|^)\|$/, "$1");
  return inner.replace(/\\\|/g, "\u0000").split("|").map((cell) => cell.replaceAll("\u0000", "|").trim());
}

function readQuote(lines, at, depth) {
  if (!QUOTE.test(lines[at]) || depth >= DEEPEST) return null;
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) next += 1;
  const inner = lines.slice(at, next).map((line) => line.replace(QUOTE, ""));
  return { node: el("blockquote", {}, ...blocksOf(inner, depth + 1).map((block) => block.node)), next };
}

function readList(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= DEEPEST) return null;
  const ordered = /\d/.test(first[2]);
  const list = el(ordered ? "ol" : "ul");
  if (ordered) list.start = parseInt(first[2], 10);
  let next = at;
  while (next < lines.length) {
    const marker = ITEM.exec(lines[next]);
    if (!marker || RULE.test(lines[next]) || marker[2].at(-1) !== first[2].at(-1)) break;
    const item = itemLines(lines, next, marker);
    list.append(itemOf(item.lines, depth));
    next = item.next;
  }
  return next > at ? { node: list, next } : null;
}

/** The lines of one item without their indent, and where the next begins. Blank lines belong to it if it goes on after them. */
function itemLines(lines, at, [head, indent, mark, gap]) {
  const width = indent.length + mark.length + Math.min(Math.max(gap.length, 1), 4);
  const inner = [lines[at].slice(head.length)];
  let next = at + 1;
  for (let line = next; line < lines.length; line += 1) {
    const text = lines[line];
    if (BLANK.test(text)) continue;
    const inside = indentOf(text) >= Math.min(width, indent.length + 2);
    const lazy = line === next && !inside && !startsBlock(text);
    if (!inside && !lazy) break;
    for (; next < line; next += 1) inner.push("");
    inner.push(dedent(text, width));
    next = line + 1;
  }
  while (next < lines.length && BLANK.test(lines[next]) && nextFilled(lines, next)) next += 1;
  return { lines: inner, next };
}

/** After blank lines another item of the list follows. */
function nextFilled(lines, at) {
  while (at < lines.length && BLANK.test(lines[at])) at += 1;
  return at < lines.length && ITEM.test(lines[at]);
}

function itemOf(lines, depth) {
  const item = el("li");
  const task = TASK.exec(lines[0]);
  if (task) {
    item.className = "task";
    item.append(el("input", { type: "checkbox", disabled: true, checked: task[1] !== " " }));
    lines = [lines[0].slice(task[0].length), ...lines.slice(1)];
  }
  const nodes = blocksOf(lines, depth + 1).map((block) => block.node);
  const tight = nodes.filter((node) => node.localName === "p").length === 1;
  item.append(...nodes.flatMap((node) => (tight && node.localName === "p" ? [...node.childNodes] : [node])));
  return item;
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function readParagraph(lines, at, depth) {
  let next = at + 1;
  while (next < lines.length && !BLANK.test(lines[next]) && !(interrupts(lines[next]) && depth < DEEPEST)) next += 1;
  return { node: el("p", {}, ...spansOf(lines.slice(at, next).join("\n").trim())), next };
}

/** A numbered line inside a paragraph is a list only from 1: "in the year\n1984." is not. */
function interrupts(line) {
  const item = ITEM.exec(line);
  return item ? item[3] !== "" && !/^(?:[02-9]|\d\d)/.test(item[2]) : startsBlock(line);
}

const indentOf = (line) => line.length - line.trimStart().length;
const dedent = (line, width) => line.slice(Math.min(indentOf(line), width));

// --- spans ----------------------------------------------------------------------------------------------------------

const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const EMPHASIS = { "**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "del" };
const CODE = /(`+)/y;
const MARKS = /\*\*|__|~~|\*|_/y;
const LINK = /(!?)\[((?:[^[\]\\\n]|\\.|\[[^[\]\n]{0,200}\]){0,1000})\]\(\s{0,9}<?([^\s<>()]{0,2000}(?:\([^\s()]{0,500}\)[^\s<>()]{0,500}){0,9})>?(?:\s{1,9}["'][^"'\n]{0,500}["'])?\s{0,9}\)/y;
const BARE = /https?:\/\/[^\s<>"`\u3000-\u303f\uff00-\uffef]{1,2000}/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BREAK = /<br\s{0,3}\/?>/iy;

const SPANS = {
  "\\": [readEscape], "`": [readCode], "*": [readEmphasis], "_": [readEmphasis], "~": [readEmphasis], "[": [readLink],
  "!": [readLink], "<": [readBreak, readAngle], "\n": [readNewline], h: [readBare],
};

/** The nodes of a run of text, which stands inside `depth` emphases, and perhaps in a link, where no other link may be. */
function spansOf(text, depth = 0, linked = false) {
  const scope = { depth, linked, missing: new Map() };
  const nodes = [];
  let plain = 0;
  SPECIAL.lastIndex = 0;
  for (let found = SPECIAL.exec(text); found; found = SPECIAL.exec(text)) {
    const at = found.index;
    const span = depth < DEEPEST ? firstOf(SPANS[text[at]], text, at, scope) : null;
    if (span) {
      nodes.push(text.slice(plain, at), ...span.nodes);
      plain = span.next;
    }
    // A run of marks that opens nothing is passed whole. Inner runs have moved the pattern: it is always set.
    SPECIAL.lastIndex = span ? span.next : at + runAt(text, at);
  }
  nodes.push(text.slice(plain));
  return nodes.filter((node) => node !== "");
}

function firstOf(readers, text, at, scope) {
  for (const reader of readers) {
    const span = reader(text, at, scope);
    if (span) return span;
  }
  return null;
}

function runAt(text, at) {
  if (!"*_~`".includes(text[at])) return 1;
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function readEscape(text, at) {
  const next = text[at + 1];
  return next && /[!-/:-@[-`{-~]/.test(next) ? { nodes: [next], next: at + 2 } : null;
}

function readNewline(text, at) {
  return { nodes: [el("br")], next: at + 1 };
}

function readBreak(text, at) {
  const match = matchAt(BREAK, text, at);
  return match && { nodes: [el("br")], next: at + match[0].length };
}

function readCode(text, at, scope) {
  const ticks = matchAt(CODE, text, at)[1];
  const end = closing(text, ticks, at + ticks.length, scope.missing, (found) =>
    text[found - 1] !== "`" && text[found + ticks.length] !== "`");
  if (end < 0) return null;
  const inner = text.slice(at + ticks.length, end).replaceAll("\n", " ");
  const code = /^ .*[^ ].* $/.test(inner) ? inner.slice(1, -1) : inner;
  return { nodes: [el("code", { textContent: code })], next: end + ticks.length };
}

function readEmphasis(text, at, scope) {
  const mark = matchAt(MARKS, text, at)?.[0];
  if (!mark || /\s/.test(text[at + mark.length] ?? " ")) return null;
  const inWord = (index) => mark[0] === "_" && /[\p{L}\p{N}_]/u.test(text[index] ?? " ");
  if (inWord(at - 1)) return null;
  const end = closing(text, mark, at + mark.length + 1, scope.missing, (found) => {
    const [before, after] = [text[found - 1], text[found + mark.length]];
    if (/\s/.test(before) || before === "\\" || inWord(found + mark.length)) return false;
    return mark.length === 2 ? after !== mark[0] : before !== mark[0] && after !== mark[0];
  });
  if (end < 0) return null;
  const inner = spansOf(text.slice(at + mark.length, end), scope.depth + 1, scope.linked);
  return { nodes: [el(EMPHASIS[mark], {}, ...inner)], next: end + mark.length };
}

/** Where `mark` stands from `from` on in a place that `fits`, or -1: then `missing` spares the next search. */
function closing(text, mark, from, missing, fits) {
  if (missing.get(mark) <= from) return -1;
  for (let found = text.indexOf(mark, from); found >= 0; found = text.indexOf(mark, found + 1)) {
    if (fits(found)) return found;
  }
  missing.set(mark, from);
  return -1;
}

function readLink(text, at, { depth, linked }) {
  const match = linked ? null : matchAt(LINK, text, at);
  if (!match) return null;
  const [whole, picture, label, target] = match;
  const inner = picture ? [`🖼 ${label || say("image")}`] : spansOf(label, depth + 1, true);
  const link = linkTo(target, inner);
  return link && { nodes: [link], next: at + whole.length };
}

function readAngle(text, at, { linked }) {
  const match = linked ? null : matchAt(ANGLE, text, at);
  const link = match && linkTo(match[1], [match[1].replace(/^mailto:/, "")]);
  return link && { nodes: [link], next: at + match[0].length };
}

function readBare(text, at, { linked }) {
  if (linked || /[A-Za-z0-9]/.test(text[at - 1] ?? " ")) return null; // Chinese puts no space before an address
  let address = matchAt(BARE, text, at)?.[0].replace(/[.,;:!?'*_~\]}]+$/, "") ?? "";
  if (address.endsWith(")") && !address.includes("(")) address = address.replace(/\)+[.,;:!?]*$/, "");
  const link = linkTo(address, [address]);
  return link && { nodes: [link], next: at + address.length };
}

/** A link, or null where the address is not one that may be followed. */
function linkTo(address, children) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address) || !URL.canParse(address)) return null;
  return el("a", { href: address, title: address, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);
}
