"""`hermes sessions export`: which conversations, in which format, and what is done with them then."""

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import partial

from hermes.cli.sessions import flags
from hermes.cli.sessions.bulk import described, plural, skipped
from hermes.cli.sessions.destination import STDOUT
from hermes.cli.sessions.formats import FORMATS, PROMPTS, Job, Write
from hermes.cli.store import readable, writable
from hermes.cli.table import Arguments
from hermes.errors import SessionNotFound, UserError
from hermes.home import Home
from hermes.redact import Redactor
from hermes.sessions import selecting
from hermes.sessions.database import open_readable, snapshot
from hermes.sessions.dbapi import Connection
from hermes.sessions.exports.document import Reading
from hermes.sessions.exports.files import Written, verify
from hermes.sessions.filters import Filter, Lineage, Selection
from hermes.sessions.lookup import get, latest, resolve
from hermes.sessions.model import OWNER, Session, SessionId


def export(home: Home, arguments: Arguments) -> int:
    """Write what was asked for. Raises UserError and StoreError; what is not written whole is not there."""
    _refuse_nonsense(arguments)
    if arguments.delete_after_verified:
        return asyncio.run(_delete_after_verified(home, arguments))
    with readable(home) as connection:
        segment, selection = _chosen(home, connection, arguments)
        chosen = (*selection.ended, *selection.open) if _takes_open(arguments) else selection.ended
        if not _takes_open(arguments):
            _note(skipped(selection, "; --include-open takes them too"))
        if arguments.dry_run:
            print("\n".join(described(chosen, flags.zone_of(home))) or "Nothing matches.")
            return 0
        if not chosen and flags.given(arguments):
            _note(["No conversation matches: nothing was written."])
            return 1
        written = _write(home, connection, arguments, chosen, segment)
    _note(_told(written, len(chosen)))
    return 0


def _refuse_nonsense(arguments: Arguments) -> None:
    """Combinations that mean nothing, each with what to do instead."""
    conditions, form = flags.given(arguments), arguments.format
    nonsense = {
        "--session-id names one session; leave out the conditions beside it.": arguments.session_id and conditions,
        "--only user-prompts is written as jsonl or md.": arguments.only and form not in PROMPTS,
        "--upload and --public are for --format trace.": (arguments.upload or arguments.public) and form != "trace",
        "--public says how to upload: give --upload too.": arguments.public and not arguments.upload,
        "--lineage is for md and qmd.": arguments.lineage != "single" and form not in {"md", "qmd"},
        "--redact and --no-redact exclude each other.": arguments.redact and arguments.no_redact,
        "--delete-after-verified takes one session and no question: give --session-id and --yes.": (
            arguments.delete_after_verified and not (arguments.session_id and arguments.yes)
        ),
        "--delete-after-verified needs a file to verify: stdout leaves none.": (
            arguments.delete_after_verified
            and (arguments.output == STDOUT or arguments.only or arguments.upload or _to_stdout(arguments))
        ),
        "--delete-after-verified deletes and --dry-run changes nothing: choose one.": (
            arguments.delete_after_verified and arguments.dry_run
        ),
        "--no-redact is for --format trace: the other formats take secrets out only with --redact.": (
            arguments.no_redact and form != "trace"
        ),
        "--upload puts traces on the Hub: leave out the output.": arguments.upload and arguments.output is not None,
        "For md and qmd name a session or give a condition: a file for every session there is would be many.": (
            form in {"md", "qmd"} and not (arguments.only or arguments.session_id or conditions)
        ),
    }
    for sentence, applies in nonsense.items():
        if applies:
            raise UserError(sentence)


def _to_stdout(arguments: Arguments) -> bool:
    """A trace goes there unless it is told where."""
    return arguments.format == "trace" and arguments.output is None


def _takes_open(arguments: Arguments) -> bool:
    """What is named, or everything there is, is written whether it has ended or not."""
    return bool(arguments.include_open) or not flags.given(arguments)


def _chosen(home: Home, connection: Connection, arguments: Arguments) -> tuple[Session | None, Selection]:
    """The segment that was named by its own id, if one was, and the conversations."""
    conditions = flags.given(arguments)
    with snapshot(connection):
        if arguments.session_id is not None:
            return _named(connection, arguments.session_id)
        if arguments.format == "trace" and not conditions:
            return None, Selection.of([_lineage(connection, latest(connection, None, OWNER))])
        wanted = flags.wanted(home, conditions, archived=None) if conditions else Filter()
        return None, Selection.of(selecting.select(connection, wanted, OWNER))


def _named(connection: Connection, reference: str) -> tuple[Session | None, Selection]:
    try:
        segment = get(connection, SessionId(reference), OWNER)
    except SessionNotFound:
        tip = resolve(connection, reference, OWNER)
        return tip, Selection.of([_lineage(connection, tip)])
    return segment, Selection.of([_lineage(connection, segment)])


def _lineage(connection: Connection, session: Session) -> Lineage:
    return selecting.lineage(connection, session.conversation, OWNER)


def _write(
    home: Home, connection: Connection, arguments: Arguments, chosen: Iterable[Lineage], segment: Session | None
) -> tuple[Written, ...]:
    redacted = arguments.redact or (arguments.format == "trace" and not arguments.no_redact)
    job = Job(
        reading=Reading(partial(snapshot, connection)),
        chosen=tuple(chosen),
        segment=segment,
        logical=arguments.lineage == "logical",
        output=arguments.output,
        folder=home.exports,
        force=bool(arguments.force),
        redactor=_redactor(home) if redacted else None,
        zone=flags.zone_of(home),
        at=time.time(),
    )
    if arguments.upload:
        from hermes.cli.sessions.uploading import upload

        upload(job, _environment(home), public=bool(arguments.public))
        return ()
    write: Write = (PROMPTS if arguments.only else FORMATS)[arguments.format]
    return tuple(write(job))


def _environment(home: Home) -> Mapping[str, str]:
    """The environment with what .env adds to it."""
    from hermes.gateway import config_file

    return config_file.environment(home, os.environ)


def _redactor(home: Home) -> Redactor:
    """Knows the secrets that are live in the environment, in .env and in the configuration."""
    from hermes.gateway import config_file

    environ = _environment(home)
    return Redactor.from_environment(environ, extra=config_file.load(home, environ).secrets)


async def _delete_after_verified(home: Home, arguments: Arguments) -> int:
    """Write one conversation and every delegate that it sent out, read the files again, and only then delete.

    Raises Changed, and deletes nothing, when any of them is not what it was before the first was read.
    """
    async with writable(home) as store:
        session = await store.resolve(arguments.session_id, OWNER)
        before = await store.stamp(session.conversation, OWNER)
        written = await asyncio.to_thread(_write_family, home, arguments, before.conversations)
        if not written:
            raise UserError("Nothing was written, so nothing was deleted.")
        for one in written:
            verify(one)
        _note(_told(written, len(before.conversations)))
        await store.delete(session.conversation, OWNER, now=time.time(), unchanged=before)
    _note([f"Verified and deleted {plural(len(before.conversations))}."])
    return 0


def _write_family(home: Home, arguments: Arguments, conversations: Iterable[str]) -> tuple[Written, ...]:
    with closing(open_readable(home.database)) as connection:
        with snapshot(connection):
            family = [selecting.lineage(connection, one, OWNER) for one in conversations]  # type: ignore[arg-type]
        return _write(home, connection, arguments, family, None)


def _told(written: Iterable[Written], conversations: int) -> list[str]:
    paths = [one.path for one in written]
    if not paths:
        return []
    where = paths[0] if len(paths) == 1 else f"{len(paths)} files in {paths[0].parent}"
    return [f"Wrote {plural(conversations)} to {where}"]


def _note(lines: Iterable[str]) -> None:
    """Words about the export: stdout may be the export itself."""
    for line in lines:
        print(line, file=sys.stderr)
