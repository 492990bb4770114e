"""The command line: every command in one table. Heavy parts are imported by the command that needs them.

It stands on argparse: the usual libraries cost more start-up time than `hermes sessions list` has in all.
"""

import argparse
import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

from hermes import __version__
from hermes.cli.sessions.commands import SESSIONS
from hermes.cli.table import JSON, YES, Arguments, Command, Parameter, argument, count, home, option, words

USAGE = 2
"""The exit code of a command that was used wrongly."""

ROLES = ("guest", "trusted", "owner")

# -- what the commands do ------------------------------------------------------------------------------------------


def _chat(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.chat import Wish, run

    if arguments.folder is not None:
        os.chdir(arguments.folder)
    wish = Wish(
        question=arguments.question,
        resume=arguments.resume,
        go_on=arguments.go_on,
        model=arguments.model,
        source=arguments.source,
    )
    return asyncio.run(run(home(), os.environ, wish))


def _gateway_run(_arguments: Arguments) -> int:
    from hermes.cli.announce import announce
    from hermes.gateway.daemon import serve_forever

    place = home()
    serve_forever(place, os.environ, announce(place))
    return 0


def _gateway_install(arguments: Arguments) -> int:
    from hermes.cli.service import install

    install(os.environ, system=arguments.system, dry_run=arguments.dry_run)
    return 0


def _gateway_uninstall(_arguments: Arguments) -> int:
    from hermes.cli.service import uninstall

    uninstall(os.environ)
    return 0


def _gateway_start(_arguments: Arguments) -> int:
    from hermes.cli.service import start

    start(os.environ)
    return 0


def _gateway_stop(_arguments: Arguments) -> int:
    from hermes.cli.service import stop

    stop(os.environ)
    return 0


def _gateway_restart(_arguments: Arguments) -> int:
    from hermes.cli.service import restart

    restart(os.environ)
    return 0


def _gateway_logs(arguments: Arguments) -> int:
    from hermes.cli.service import logs

    return logs(os.environ, lines=arguments.lines, follow=arguments.follow)


def _backup_create(_arguments: Arguments) -> int:
    from hermes.cli.backup import create

    create(home())
    return 0


def _backup_verify(arguments: Arguments) -> int:
    from hermes.cli.backup import verify

    return verify(home(), arguments.name)


def _backup_restore(arguments: Arguments) -> int:
    from hermes.cli.backup import restore

    return restore(home(), arguments.name, assume_yes=bool(arguments.yes))


def _backup_list(arguments: Arguments) -> int:
    from hermes.cli.backup import show

    show(home(), as_json=bool(arguments.json))
    return 0


def _forget(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.forget import forget

    return asyncio.run(forget(home(), arguments.platform, arguments.user, assume_yes=bool(arguments.yes)))


def _search(arguments: Arguments) -> int:
    from hermes.cli.search import search
    from hermes.sessions.model import Order, Query, Role

    roles = frozenset(Role(name) for name in arguments.role or ("user", "assistant"))
    order = Order(arguments.sort) if arguments.sort else Order.RELEVANCE
    query = Query(text=" ".join(arguments.query), limit=arguments.limit, order=order, roles=roles)
    return search(home(), query, as_json=bool(arguments.json))


def _insights(arguments: Arguments) -> int:
    from hermes.cli.insights import show

    show(home(), days=arguments.days, as_json=bool(arguments.json))
    return 0


def _status(arguments: Arguments) -> int:
    from hermes.cli.status import show

    return show(home(), as_json=arguments.json)


def _doctor(_arguments: Arguments) -> int:
    from hermes.cli.doctor import show

    return show(os.environ)


def _pairing_list(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.pairing import show

    asyncio.run(show(home(), as_json=arguments.json))
    return 0


def _pairing_approve(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.pairing import approve

    asyncio.run(approve(home(), arguments.platform, arguments.code, arguments.role))
    return 0


def _pairing_revoke(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.pairing import revoke

    asyncio.run(revoke(home(), arguments.platform, arguments.user))
    return 0


# -- the table -----------------------------------------------------------------------------------------------------


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


GO_ON = (
    option("-r", "--resume", metavar="ID|TITLE|latest", type=words, does="go on with this session"),
    option(
        "-c",
        "--continue",
        dest="go_on",
        metavar="NAME",
        nargs="?",
        const="",
        does="go on with the last session of this terminal, or with NAME",
    ),
)
"""They may also stand before `chat`."""

CHAT = (
    option("-q", "--query", dest="question", metavar="TEXT", type=words, does="ask once, print the answer, leave"),
    *GO_ON,
    option("-m", "--model", metavar="NAME", type=words, does="let another model answer"),
    option("--source", metavar="TAG", type=words, does="mark the session with TAG instead of cli"),
    option("--in", dest="folder", metavar="DIR", type=_folder, does="work in this folder"),
)

BACKUP = argument("name", "a file's name below backups/, its path, or latest")

GROUPS = {
    "backup": "copies of the store",
    "gateway": "the daemon",
    "sessions": "what was said",
    "pairing": "who may talk, and as what",
}

COMMANDS = (
    Command(path="chat", does="Talk in this terminal; what `hermes` alone does.", run=_chat, parameters=CHAT),
    Command(path="gateway run", does="Run the gateway in the foreground until it is told to stop.", run=_gateway_run),
    Command(
        path="gateway install",
        does="Make it a service of this machine that starts by itself.",
        run=_gateway_install,
        parameters=(
            option("--system", action="store_true", does="for the whole machine, as root; else for this account"),
            option("--dry-run", action="store_true", does="print the unit, change nothing"),
        ),
    ),
    Command(
        path="gateway uninstall", does="Stop the service and take it away; the home stays.", run=_gateway_uninstall
    ),
    Command(path="gateway start", does="Start the service.", run=_gateway_start),
    Command(path="gateway stop", does="Let running answers end, and stop the gateway of this home.", run=_gateway_stop),
    Command(path="gateway restart", does="Stop the service in the same way, and start it again.", run=_gateway_restart),
    Command(path="gateway status", does="The same as `hermes status`.", run=_status, parameters=(JSON,)),
    Command(
        path="gateway logs",
        does="Show what the service has logged.",
        run=_gateway_logs,
        parameters=(
            option("-n", "--lines", metavar="N", type=count, default=50, does="the last so many lines (50)"),
            option("-f", "--follow", action="store_true", does="stay, and show what comes"),
        ),
    ),
    *SESSIONS,
    Command(
        path="search",
        does="Find what was said, in every conversation that is kept.",
        run=_search,
        parameters=(
            Parameter(
                names=("query",),
                does='words that all occur; "a phrase", OR, NOT and prefix* are understood',
                settings={"nargs": "+", "metavar": "QUERY"},
            ),
            option("--limit", metavar="N", type=count, default=10, does="at most so many conversations (10)"),
            option("--sort", choices=("newest", "oldest"), does="by time instead of by how well they match"),
            option("--role", choices=("user", "assistant", "tool"), action="append", does="only what these said"),
            JSON,
        ),
    ),
    Command(
        path="insights",
        does="Show what was spent, on which models and tools, and when people write.",
        run=_insights,
        parameters=(option("--days", metavar="N", type=count, default=30, does="of so many days (30)"), JSON),
    ),
    Command(
        path="pairing list", does="Show who waits to be let in, and who was.", run=_pairing_list, parameters=(JSON,)
    ),
    Command(
        path="pairing approve",
        does="Let in whoever shows this code.",
        run=_pairing_approve,
        parameters=(
            argument("platform", "where they write, such as telegram"),
            argument("code", "what they were shown"),
            option("--role", choices=ROLES, default=ROLES[0], does="what they may do (guest)"),
        ),
    ),
    Command(
        path="pairing revoke",
        does="Take back what pairing gave; it holds from the next message on.",
        run=_pairing_revoke,
        parameters=(argument("platform", "where they write"), argument("user", "their id, as `pairing list` shows it")),
    ),
    Command(
        path="backup create",
        does="Copy the store in one snapshot while everything runs, and look the copy through.",
        run=_backup_create,
    ),
    Command(path="backup verify", does="Look a backup through.", run=_backup_verify, parameters=(BACKUP,)),
    Command(
        path="backup restore",
        does="Put a backup in the place of the store, which is kept aside; nobody may have it open.",
        run=_backup_restore,
        parameters=(BACKUP, YES),
    ),
    Command(path="backup list", does="Show the backups, newest first.", run=_backup_list, parameters=(JSON,)),
    Command(
        path="forget",
        does="Erase a person: conversations, words in rooms, memory, deliveries, rights; says what backups still hold.",
        run=_forget,
        parameters=(argument("platform", "where they write"), argument("user", "their id, as /whoami shows it"), YES),
    ),
    Command(
        path="status",
        does="Show whether the gateway runs, how its links are, and whether the books add up.",
        run=_status,
        parameters=(JSON,),
    ),
    Command(path="doctor", does="Look for what is wrong, and name the remedy.", run=_doctor),
)
"""In the order in which help shows them."""


# -- reading it ----------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"hermes: {message}. See: {self.prog} --help\n")


def parse(arguments: Sequence[str]) -> Arguments:
    """What was asked for; its `run` carries it out. Exits with a sentence when it makes no sense."""
    return parser().parse_args(_spelt_out(arguments))


def parser() -> argparse.ArgumentParser:
    """The table as argparse knows it. Without a command it is `chat`.

    An option that is not given is None at the root alone, so that one given before the command's word stays.
    """
    root = _Parser(
        prog="hermes",
        description="Talk to one AI agent from the chats you already use; every conversation is kept.",
        allow_abbrev=False,
    )
    root.add_argument("-V", "--version", action="version", version=f"hermes {__version__}", help="show the version")
    for one in GO_ON:
        one.add_to(root)
    groups = {"": root.add_subparsers(title="commands", metavar="COMMAND")}
    for command in COMMANDS:
        group, _, name = command.path.rpartition(" ")
        if group not in groups:
            inner = groups[""].add_parser(group, help=GROUPS[group], allow_abbrev=False)
            groups[group] = inner.add_subparsers(title="commands", metavar="COMMAND", required=True)
        leaf = groups[group].add_parser(
            name,
            help=command.does,
            description=command.does,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        root.set_defaults(**dict.fromkeys(one.add_to(leaf) for one in command.parameters))
        leaf.set_defaults(run=command.run)
    root.set_defaults(run=_chat)
    return root


def _spelt_out(arguments: Sequence[str]) -> list[str]:
    """`-c chat` goes on with the last session: a session of that name is `-c=chat`."""
    full: list[str] = []
    for one, following in zip_longest(arguments, arguments[1:]):
        full.append(one)
        if one in {"-c", "--continue"} and following == "chat":
            full.append("")
    return full
