"""The command line: every command in one table. Heavy parts are imported by the command that needs them."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hermes import __version__
from hermes.home import Home, locate, open_home

app = typer.Typer(
    name="hermes",
    help="Talk to one AI agent from the chats you already use; every conversation is kept.",
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
gateway = typer.Typer(help="The daemon.", no_args_is_help=True)
sessions = typer.Typer(help="What was said.", no_args_is_help=True)
pairing = typer.Typer(help="Who may talk, and as what.", no_args_is_help=True)
app.add_typer(gateway, name="gateway")
app.add_typer(sessions, name="sessions")
app.add_typer(pairing, name="pairing")

Continue = Annotated[
    str | None,
    typer.Option("--continue", "-c", metavar="[NAME]", help="Go on with the last terminal session, or with NAME."),
]
Resume = Annotated[
    str | None, typer.Option("--resume", "-r", metavar="ID|TITLE|latest", help="Go on with this session.")
]
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]


def home() -> Home:
    """The home folder, made when it is missing."""
    return open_home(locate(os.environ))


@app.callback()
def entry(
    context: typer.Context,
    resume: Resume = None,
    go_on: Continue = None,
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version and leave.")] = False,
) -> None:
    """Without a command: chat."""
    if version:
        typer.echo(f"hermes {__version__}")
        raise typer.Exit
    context.obj = (resume, go_on)
    if context.invoked_subcommand is None:
        _chat(question=None, resume=resume, go_on=go_on, model=None, source=None)


@app.command()
def chat(
    context: typer.Context,
    question: Annotated[str | None, typer.Option("--query", "-q", help="Ask once, print the answer, leave.")] = None,
    resume: Resume = None,
    go_on: Continue = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Another model for this session.")] = None,
    source: Annotated[str | None, typer.Option(help="Mark the session with this source instead of cli.")] = None,
    folder: Annotated[Path | None, typer.Option("--in", help="Work in this folder.")] = None,
) -> None:
    """Talk in this terminal."""
    if folder is not None:
        os.chdir(folder)
    before_resume, before_go_on = context.obj
    _chat(
        question=question,
        resume=resume or before_resume,
        go_on=go_on if go_on is not None else before_go_on,
        model=model,
        source=source,
    )


def _chat(
    *, question: str | None, resume: str | None, go_on: str | None, model: str | None, source: str | None
) -> None:
    from hermes.cli.chat import Wish, run

    wish = Wish(question=question, resume=resume, go_on=go_on, model=model, source=source)
    sys.exit(asyncio.run(run(home(), os.environ, wish)))


@gateway.command("run")
def gateway_run() -> None:
    """Run the gateway in the foreground until it is told to stop."""
    from hermes.cli.announce import announce
    from hermes.gateway.daemon import run

    place = home()
    asyncio.run(run(place, os.environ, announce(place)))


@sessions.command("list")
def sessions_list(
    source: Annotated[str | None, typer.Option(help="Only those that came through this entry.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 20,
    json: Json = False,
) -> None:
    """Show the conversations, last active first."""
    from hermes.cli.listing import show

    show(home(), source=source, limit=limit, as_json=json)


@app.command()
def status(json: Json = False) -> None:
    """Show whether the gateway runs, how its links are, and whether the books add up."""
    from hermes.cli.status import show

    sys.exit(asyncio.run(show(home(), os.environ, as_json=json)))


@app.command()
def doctor() -> None:
    """Look for what is wrong, and name the remedy."""
    from hermes.cli.doctor import show

    sys.exit(show(home(), os.environ))


@pairing.command("list")
def pairing_list(json: Json = False) -> None:
    """Show who waits to be let in, and who was."""
    from hermes.cli.pairing import show

    asyncio.run(show(home(), as_json=json))


@pairing.command("approve")
def pairing_approve(
    platform: str,
    code: str,
    role: Annotated[str, typer.Option(help="guest, trusted or owner.")] = "guest",
) -> None:
    """Let in whoever shows this code."""
    from hermes.cli.pairing import approve

    asyncio.run(approve(home(), platform, code, role))


@pairing.command("revoke")
def pairing_revoke(platform: str, user: str) -> None:
    """Take back what pairing gave; it holds from the next message on."""
    from hermes.cli.pairing import revoke

    asyncio.run(revoke(home(), platform, user))
