// What the page says, in the reader's language, and small means to build elements. No markup from strings, ever.

const TEXTS = {
  en: {
    conversations: "Conversations", theme: "Light or dark", logout: "Log out", newChat: "New chat", search: "Search",
    archived: "Archived", showArchived: "Show archived", hideArchived: "Hide archived", more: "More", messages: "Messages",
    rename: "Rename", archive: "Archive", unarchive: "Move out of the archive", remove: "Delete",
    greeting: "What is on your mind?", greetingMore: "Everything you say is kept on your own machine.",
    jump: "Newest", reconnecting: "Reconnecting… your messages are kept.", message: "Message Hermes", stop: "Stop", send: "Send",
    keys: "Enter sends · Shift + Enter for a new line",
    secretWhere: "Enter the secret. You find it in $HERMES_HOME/web-token.", secret: "Secret", login: "Log in",
    secretWrong: "That is not the secret.", codeUsed: "This link has been used or is too old. Enter the secret instead.",
    removeQuestion: "Delete this conversation?", removeMore: "All of its messages are removed. This cannot be undone.", keep: "Keep",
    today: "Today", yesterday: "Yesterday", earlier: "Earlier", loadMore: "Load more", nothing: "No conversations yet.",
    noHits: "Nothing found.", partial: "The search ran out of time: there may be more.", copy: "Copy", copied: "Copied",
    thinking: "Thinking", waiting: "Not sent yet", again: "Send again", untitled: "Untitled", arguments: "Arguments", result: "Result",
    now: "now", image: "Image", failed: "That did not work ({0}).", offline: "The gateway cannot be reached. Try again.",
  },
  zh: {
    conversations: "对话", theme: "浅色或深色", logout: "退出登录", newChat: "新对话", search: "搜索",
    archived: "已归档", showArchived: "显示已归档", hideArchived: "隐藏已归档", more: "更多", messages: "消息",
    rename: "重命名", archive: "归档", unarchive: "取消归档", remove: "删除",
    greeting: "想聊点什么?", greetingMore: "您说的一切都保存在您自己的机器上。",
    jump: "最新消息", reconnecting: "正在重新连接……消息不会丢失。", message: "给 Hermes 发消息", stop: "停止", send: "发送",
    keys: "Enter 发送 · Shift + Enter 换行",
    secretWhere: "请输入密钥,它在 $HERMES_HOME/web-token 中。", secret: "密钥", login: "登录",
    secretWrong: "密钥不正确。", codeUsed: "此链接已使用或已过期,请输入密钥。",
    removeQuestion: "删除这个对话?", removeMore: "其中所有消息都会被删除,无法恢复。", keep: "保留",
    today: "今天", yesterday: "昨天", earlier: "更早", loadMore: "加载更多", nothing: "还没有对话。",
    noHits: "没有找到。", partial: "搜索超时,可能还有更多结果。", copy: "复制", copied: "已复制",
    thinking: "正在思考", waiting: "尚未发送", again: "重新发送", untitled: "无标题", arguments: "参数", result: "结果",
    now: "刚刚", image: "图片", failed: "操作失败({0})。", offline: "无法连接网关,请重试。",
  },
};
const LANGUAGE = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
const say = (key, ...facts) => TEXTS[LANGUAGE][key].replace(/\{(\d)\}/g, (_, index) => facts[index]);

const $ = (id) => document.getElementById(id);

/** An element with properties and children; text children are text. */
function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** Put the texts of the reader's language where the document names them. */
function translate(root) {
  document.documentElement.lang = LANGUAGE === "zh" ? "zh-CN" : "en";
  for (const node of root.querySelectorAll("[data-text]")) node.textContent = say(node.dataset.text);
  for (const node of root.querySelectorAll("[data-hint]")) node.placeholder = say(node.dataset.hint);
  for (const node of root.querySelectorAll("[data-label]")) {
    node.setAttribute("aria-label", say(node.dataset.label));
    if (node.matches("button")) node.title = say(node.dataset.label);
  }
}

const DAY = 86_400;
const RELATIVE = new Intl.RelativeTimeFormat(LANGUAGE, { style: "narrow", numeric: "always" });
const DATE = new Intl.DateTimeFormat(LANGUAGE, { month: "short", day: "numeric" });
const MOMENT = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short" });

/** How long ago `at` was, in a word; `at` in seconds since the epoch. */
function ago(at) {
  const seconds = Date.now() / 1000 - at;
  if (seconds < 60) return say("now");
  if (seconds < 3600) return RELATIVE.format(-Math.floor(seconds / 60), "minute");
  if (seconds < DAY) return RELATIVE.format(-Math.floor(seconds / 3600), "hour");
  return DATE.format(at * 1000);
}

/** The heading of the list below which `at` stands. */
function dayOf(at) {
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  if (at >= midnight) return "today";
  return at >= midnight - DAY ? "yesterday" : "earlier";
}

/** Copy what `node` says, and tell so on the button. Without https there is no clipboard: then the text is selected. */
async function copy(button, node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
  } catch {
    getSelection().selectAllChildren(node);
    return;
  }
  button.textContent = say("copied");
  setTimeout(() => { button.textContent = say("copy"); }, 1500);
}
