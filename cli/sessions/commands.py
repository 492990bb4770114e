"""The table of `hermes sessions`. What a command does is imported when it runs."""

from hermes.cli.sessions.flags import DRY_RUN, FILTERS
from hermes.cli.table import JSON, YES, Arguments, Command, Parameter, argument, count, home, option, words

FORMATS = ("jsonl", "md", "qmd", "html", "trace")


def _list(arguments: Arguments) -> int:
    from hermes.cli.listing import show
    from hermes.sessions.model import Page

    page = Page(
        limit=arguments.limit,
        source=arguments.source,
        workspace=arguments.workspace,
        include_archived=bool(arguments.include_archived),
    )
    show(home(), page, as_json=bool(arguments.json))
    return 0


def _browse(arguments: Arguments) -> int:
    import os

    from hermes.cli.browse import browse

    return browse(home(), os.environ, source=arguments.source, limit=arguments.limit)


def _show(arguments: Arguments) -> int:
    from hermes.cli.sessions.show import show

    show(home(), arguments.session, limit=arguments.limit, as_json=bool(arguments.json))
    return 0


def _export(arguments: Arguments) -> int:
    from hermes.cli.sessions.export import export

    return export(home(), arguments)


def _import(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.importing import bring_in

    asyncio.run(bring_in(home(), arguments.file, arguments.origin))
    return 0


def _delete(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.removing import delete

    return asyncio.run(delete(home(), arguments.session, assume_yes=bool(arguments.yes)))


def _prune(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.removing import prune

    return asyncio.run(prune(home(), arguments))


def _rename(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.naming import rename

    asyncio.run(rename(home(), arguments.session, " ".join(arguments.title)))
    return 0


def _archive(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.archiving import archive

    return asyncio.run(archive(home(), arguments))


def _unarchive(arguments: Arguments) -> int:
    import asyncio

    from hermes.cli.sessions.archiving import unarchive

    return asyncio.run(unarchive(home(), arguments))


def _stats(arguments: Arguments) -> int:
    from hermes.cli.sessions.stats import show

    show(home(), as_json=bool(arguments.json))
    return 0


def _repair(arguments: Arguments) -> int:
    from hermes.cli.repair import repair

    return repair(home(), check_only=bool(arguments.check_only), backup=not arguments.no_backup)


def _optimize(_arguments: Arguments) -> int:
    from hermes.cli.repair import optimize

    optimize(home())
    return 0


SESSION = argument("session", "an id, the unique beginning of one, a title, or latest")
OPTIONAL_SESSION = Parameter(names=("session",), does=SESSION.does, settings={"nargs": "?", "metavar": "SESSION"})
TITLE = Parameter(names=("title",), does="its words; no quotes needed", settings={"nargs": "+", "metavar": "TITLE"})
INCLUDE_ARCHIVED = option("--include-archived", action="store_true", does="also those that are archived")

EXPORT = (
    Parameter(
        names=("output",),
        does="a file, a folder for md and qmd, or - for stdout",
        settings={"nargs": "?", "metavar": "OUTPUT"},
    ),
    option("--format", choices=FORMATS, default=FORMATS[0], does="what to write (jsonl)"),
    option("--session-id", metavar="SESSION", type=words, does=f"only this one: {SESSION.does}"),
    *FILTERS,
    option("--include-open", action="store_true", does="also those that have not ended"),
    option("--only", choices=("user-prompts",), does="only what people said, as jsonl or md"),
    option(
        "--lineage", choices=("single", "logical"), default="single", does="md, qmd: a file a segment, or one in all"
    ),
    option("--redact", action="store_true", does="take secrets out"),
    option("--no-redact", action="store_true", does="trace: leave secrets in"),
    option("--upload", action="store_true", does="trace: to your data set hermes-traces, with HF_TOKEN"),
    option("--public", action="store_true", does="with --upload: for everybody to see"),
    option("--delete-after-verified", action="store_true", does="with --session-id and --yes: delete what was written"),
    option("--force", action="store_true", does="replace files that are there"),
    DRY_RUN,
    YES,
)

SESSIONS = (
    Command(
        path="sessions list",
        does="Show the conversations, last active first.",
        run=_list,
        parameters=(
            option("--source", metavar="NAME", does="only those that came through this entry"),
            option("--limit", metavar="N", type=count, default=20, does="at most so many (20)"),
            option("--workspace", metavar="TEXT", type=words, does="only those held in a folder with this in its path"),
            INCLUDE_ARCHIVED,
            JSON,
        ),
    ),
    Command(
        path="sessions browse",
        does="Pick a conversation on a full screen, by typing a part of its name, and go on with it.",
        run=_browse,
        parameters=(
            option("--source", metavar="NAME", does="only those that came through this entry"),
            option("--limit", metavar="N", type=count, default=500, does="the latest so many (500)"),
        ),
    ),
    Command(
        path="sessions show",
        does="Show one conversation: its facts and its last messages.",
        run=_show,
        parameters=(
            SESSION,
            option("--limit", metavar="N", type=count, default=20, does="so many messages (20)"),
            JSON,
        ),
    ),
    Command(
        path="sessions export",
        does="Write conversations to files that people or programs read.",
        run=_export,
        parameters=EXPORT,
    ),
    Command(
        path="sessions import",
        does="Bring conversations in; what is here already is left as it is.",
        run=_import,
        parameters=(
            argument("file", "an export, a log, a folder of logs, or another program's state.db"),
            option(
                "--from",
                dest="origin",
                choices=("hermes", "hermes-agent", "claude", "codex"),
                default="hermes",
                does="which program wrote it (hermes)",
            ),
        ),
    ),
    Command(
        path="sessions delete",
        does="Delete one conversation for good, with the delegates that it sent out.",
        run=_delete,
        parameters=(SESSION, YES),
    ),
    Command(
        path="sessions rename",
        does="Give a conversation a title that no other has.",
        run=_rename,
        parameters=(SESSION, TITLE),
    ),
    Command(
        path="sessions prune",
        does="Delete ended conversations; without a condition those last active 90 days ago or earlier.",
        run=_prune,
        parameters=(*FILTERS, INCLUDE_ARCHIVED, DRY_RUN, YES),
    ),
    Command(
        path="sessions archive",
        does="Hide conversations from lists; nothing is lost, and search still finds them.",
        run=_archive,
        parameters=(OPTIONAL_SESSION, *FILTERS, DRY_RUN, YES),
    ),
    Command(
        path="sessions unarchive",
        does="Show archived conversations in lists again.",
        run=_unarchive,
        parameters=(OPTIONAL_SESSION, *FILTERS, DRY_RUN, YES),
    ),
    Command(
        path="sessions stats",
        does="Count conversations and messages, and show the size of the store.",
        run=_stats,
        parameters=(JSON,),
    ),
    Command(
        path="sessions repair",
        does="Look the store through and mend what can be mended, with a copy kept of what was there.",
        run=_repair,
        parameters=(
            option("--check-only", action="store_true", does="only say what is wrong"),
            option("--no-backup", action="store_true", does="keep no copy: for a disk without room for one"),
        ),
    ),
    Command(
        path="sessions optimize",
        does="Bring the search index in order, and write the file anew without gaps.",
        run=_optimize,
    ),
)
