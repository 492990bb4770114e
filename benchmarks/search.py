"""`python -m benchmarks.search`: what a search finds, of what is there. Truth is a scan for the letters themselves.

A conversation counts as meant when one of its messages holds every word of the query as written, whatever the case. The
query set is fixed: words, pieces of scripts without blanks, code, and the things that break full-text syntax.
"""

import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.run import HERE, SEED, _side, install_peer

CONVERSATIONS = 600
LIMIT = 10_000

SENTENCES: Mapping[str, Sequence[str]] = {
    "English": (
        "Please refactor the authentication module before the release.",
        "It's the user's own token that expired yesterday.",
        "The café on the corner serves naïve tourists.",
        "We deployed to staging and rolled back twice.",
        "Remember that the invoice is due on Friday.",
    ),
    "Chinese": (
        "请帮我重构认证模块，然后部署到服务器。",
        "重跑gen-itgc后50条悬空引用",
        "修改youer服务端的配置文件",
        "数据库迁移失败了，日志里有错误。",
        "明天的会议改到下午三点。",
    ),
    "Japanese": (
        "認証モジュールをリファクタリングしてください。",
        "データベースの移行に失敗しました。",
        "明日の会議は午後三時に変更です。",
        "サーバーのログを確認しました。",
        "東京への出張を予約する。",
    ),
    "Korean": (
        "인증 모듈을 리팩터링해 주세요.",
        "데이터베이스 마이그레이션이 실패했습니다.",
        "내일 회의는 오후 세 시로 변경되었습니다.",
        "서버로그를 확인했어요.",
        "서울출장을 예약합니다.",
    ),
    "Code": (
        "Build it with C++ and link -lfoo_bar.",
        "See gateway/run.py, line 42, and #4806.",
        "Write to user@host.example at 50% load.",
        "self._store.find(key) raises KeyError: 'x-y-z'",
        "git rebase --onto main foo-bar && make test",
    ),
}

QUERIES: Mapping[str, Sequence[str]] = {
    "English": ("authentication", "it's", "café", "cafe", "deployed staging", "invoice", "roll*"),
    "Chinese": ("认证", "悬空引用", "itgc", "youer", "服务端", "库", "会议 下午", "部署"),
    "Japanese": ("認証", "データベース", "会議", "東", "ログ", "出張 予約"),
    "Korean": ("인증", "데이터베이스", "로그", "출장", "회의 변경", "서"),
    "Code": (
        "C++",
        "gateway/run.py",
        "#4806",
        "user@host",
        "50%",
        "foo_bar",
        "foo-bar",
        "KeyError: 'x-y-z'",
        "_store.find",
    ),
}


def corpus(seed: int) -> list[list[str]]:
    """Conversations of one to four sentences; the same for the same seed."""
    chance = random.Random(seed)
    languages = list(SENTENCES)
    return [
        [chance.choice(SENTENCES[language]) for _ in range(chance.randint(1, 4))]
        for language in (chance.choice(languages) for _ in range(CONVERSATIONS))
    ]


def meant(conversations: Sequence[Sequence[str]], query: str) -> set[int]:
    """The conversations in which one message holds every word of the query, letter by letter."""
    words = [word.strip("*").casefold() for word in query.split()]
    if query.startswith("KeyError"):
        words = [query.casefold()]
    return {
        number
        for number, one in enumerate(conversations)
        if any(all(word in text.casefold() for word in words) for text in one)
    }


def main() -> int:
    """Print a line a query, and the sums."""
    conversations = corpus(SEED)
    queries = [(language, query) for language, some in QUERIES.items() for query in some]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-recall-")))
        commands = {
            "ours": [sys.executable, "-m", "benchmarks.ours"],
            "peer": [str(install_peer()), str(HERE / "peer.py")],
        }
        found = {}
        for name, command in commands.items():
            side = stack.enter_context(_side(command, folder / name))
            (side.folder / "recall").mkdir()
            side.do("open", folder=str(side.folder / "recall"))
            side.do("learn", conversations=conversations)
            found[name] = side.do("recall", queries=[query for _, query in queries], limit=LIMIT)["found"]
    print("| language | query | there | Hermes | peer |\n|---|---|--:|--:|--:|")
    sums: dict[str, list[int]] = {}
    for (language, query), ours, peer in zip(queries, found["ours"], found["peer"], strict=True):
        truth = meant(conversations, query)
        figures = [len(truth), len(truth & set(ours)), len(truth & set(peer))]
        sums[language] = [a + b for a, b in zip(sums.get(language, [0, 0, 0]), figures, strict=True)]
        print(f"| {language} | `{query}` | {figures[0]} | {figures[1]} | {figures[2]} |")
    for language, (there, ours, peer) in sums.items():
        print(f"| **{language}** | all | {there} | **{ours / there:.0%}** | {peer / there:.0%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
