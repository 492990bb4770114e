"""Conversations as people and agents have them: English, Chinese, code, tool calls and their output. Pure, seeded.

Standard library only, because both sides of a comparison read it. A message has about 400 bytes on average, a third of
the conversations are Chinese, and every second answer needed a tool.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WORDS = [
    "the",
    "a",
    "to",
    "of",
    "and",
    "in",
    "we",
    "for",
    "on",
    "that",
    "this",
    "with",
    "it",
    "is",
    "are",
    "was",
    "be",
    "can",
    "not",
    "you",
    "have",
    "from",
    "at",
    "or",
    "by",
    "as",
    "if",
    "but",
    "when",
    "report",
    "build",
    "server",
    "error",
    "deploy",
    "table",
    "query",
    "index",
    "token",
    "session",
    "message",
    "gateway",
    "customer",
    "invoice",
    "budget",
    "draft",
    "meeting",
    "schedule",
    "flight",
    "hotel",
    "recipe",
    "garden",
    "translate",
    "summary",
    "review",
    "branch",
    "commit",
    "merge",
    "release",
    "version",
    "network",
    "latency",
    "memory",
    "cache",
    "queue",
    "worker",
    "thread",
    "socket",
    "retry",
    "timeout",
    "backup",
    "restore",
    "migration",
    "schema",
    "column",
    "permission",
    "password",
    "account",
    "profile",
    "picture",
    "summer",
    "winter",
    "project",
    "deadline",
    "proposal",
    "contract",
    "agreement",
    "weather",
    "morning",
    "tomorrow",
    "yesterday",
    "probably",
    "already",
    "usually",
    "everything",
    "something",
    "between",
    "without",
    "because",
    "although",
    "however",
    "configure",
    "install",
    "measure",
    "compare",
    "explain",
    "describe",
    "rewrite",
    "remember",
    "forget",
    "search",
    "archive",
    "export",
    "import",
]

PHRASES = [
    "我们",
    "你们",
    "他们",
    "这个",
    "那个",
    "今天",
    "明天",
    "昨天",
    "已经",
    "可能",
    "应该",
    "需要",
    "因为",
    "所以",
    "但是",
    "如果",
    "会话",
    "消息",
    "网关",
    "数据库",
    "索引",
    "搜索",
    "压缩",
    "摘要",
    "模型",
    "服务器",
    "部署",
    "配置",
    "日志",
    "错误",
    "重试",
    "超时",
    "备份",
    "恢复",
    "迁移",
    "权限",
    "账户",
    "项目",
    "会议",
    "计划",
    "预算",
    "合同",
    "航班",
    "酒店",
    "天气",
    "早上",
    "晚上",
    "翻译",
    "解释",
    "比较",
    "测量",
    "记住",
    "整理",
    "文件",
    "图片",
    "版本",
    "发布",
    "分支",
    "合并",
    "请",
    "帮我",
    "看一下",
    "为什么",
    "怎么办",
    "没有问题",
    "谢谢",
]

LINES = (
    "    for {a} in {b}:\n        {c}.append({a})",
    "def {a}({b}, {c}=None):\n    return {b}.{c}",
    "    if {a} is None:\n        raise {b}Error('{c}')",
    "import {a}\nfrom {b} import {c}",
    "SELECT {a}, {b} FROM {c} WHERE {a} > 42 ORDER BY {b};",
)

TOOLS = ("terminal", "read_file", "web_fetch", "session_search")

TURNS = (1, 1, 2, 3, 4, 6, 8, 12, 20, 40)
"""Turns of a conversation, each as likely: most are short, some are long."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `call` is the id, the tool and the arguments of what an assistant asked for."""

    role: str
    text: str
    call: tuple[str, str, str] | None = None
    answers: str | None = None
    """The id of the call whose result this is."""


def conversations(seed: int) -> Iterator[list[Said]]:
    """Without end, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        yield conversation(chance, chance.choice(TURNS))


def rows(seed: int, count: int) -> Iterator[list[Said]]:
    """Conversations with `count` messages in all; the last one may be cut short."""
    left = count
    for one in conversations(seed):
        yield one[:left]
        left -= len(one)
        if left <= 0:
            return


def conversation(chance: random.Random, turns: int) -> list[Said]:
    """So many questions, with what became of them."""
    chinese = chance.random() < 1 / 3
    said: list[Said] = []
    for _ in range(turns):
        said.append(Said("user", talk(chance, chance.randint(4, 40), chinese=chinese)))
        if chance.random() < 0.5:
            said += _tool(chance)
        answer = talk(chance, chance.randint(20, 120), chinese=chinese)
        said.append(Said("assistant", f"{answer}\n\n{code(chance, 4)}" if chance.random() < 0.2 else answer))
    return said


def talk(chance: random.Random, words: int, *, chinese: bool = False) -> str:
    """Sentences; names and numbers among them, so that an index has something to tell apart."""
    if chinese:
        return "".join(chance.choice(PHRASES) + ("，" if chance.random() < 0.15 else "") for _ in range(words)) + "。"
    return " ".join(_rare(chance) if chance.random() < 0.06 else chance.choice(WORDS) for _ in range(words)) + "."


def code(chance: random.Random, lines: int) -> str:
    """A fenced block."""
    body = "\n".join(
        chance.choice(LINES).format(a=chance.choice(WORDS), b=chance.choice(WORDS), c=_rare(chance))
        for _ in range(lines)
    )
    return f"```python\n{body}\n```"


def text_of(chance: random.Random, size: int) -> str:
    """One text of about `size` bytes: a long answer, a log."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(talk(chance, 60) if chance.random() < 0.7 else code(chance, 6))
    return "\n".join(parts)[:size]


def _tool(chance: random.Random) -> Sequence[Said]:
    call = f"call_{chance.getrandbits(48):012x}"
    arguments = json.dumps({"path": f"/srv/{chance.choice(WORDS)}/{_rare(chance)}.py", "limit": chance.randint(1, 200)})
    listing = "\n".join(
        f"{chance.randint(1, 999):>4} {chance.choice(WORDS)}/{_rare(chance)} {talk(chance, 6)}"
        for _ in range(chance.randint(3, 24))
    )
    return (Said("assistant", "", call=(call, chance.choice(TOOLS), arguments)), Said("tool", listing, answers=call))


def _rare(chance: random.Random) -> str:
    return f"{chance.choice(WORDS)}_{chance.getrandbits(20):x}"


def texts_of(kind: str, seed: int, count: int) -> list[Said]:
    """So many messages: `mix` as they come, `2k` and `50k` long ones of that size."""
    if kind == "mix":
        return [one for each in rows(seed, count) for one in each]
    chance = random.Random(seed)
    return [Said("user", text_of(chance, {"2k": 2_000, "50k": 50_000}[kind])) for _ in range(count)]


QUERIES = (
    *("deploy server", "timeout", '"the build"', "backup OR restore", "release NOT merge", "migrat*", "the"),
    *("会话", "数据库", "我们 部署", "航", "看一下 gateway", "thereisnosuchword", "没有这样的词句"),
)
"""What people look for: words, a phrase, operators, a prefix, the commonest word; Chinese words of one, two and three
characters, mixed with Latin; and words that nobody said."""


def six(chance: random.Random) -> list[Said]:
    """A turn of six messages: a question, two rounds of a tool, an answer."""
    while len(turn := conversation(chance, 1)) != 4:
        pass
    return [turn[0], *turn[1:3], *turn[1:3], turn[3]]
