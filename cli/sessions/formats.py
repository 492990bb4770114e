"""One function a format: from chosen conversations to files, or to stdout."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain
from pathlib import Path

from hermes.cli.progress import watched
from hermes.cli.sessions.destination import STDOUT, new_folder, put, show, within
from hermes.errors import UserError
from hermes.redact import Redactor
from hermes.sessions import records
from hermes.sessions.exports import files, html, manifest, markdown, prompts, redaction, trace
from hermes.sessions.exports.document import Document, Reading
from hermes.sessions.exports.files import Written
from hermes.sessions.filters import Lineage
from hermes.sessions.model import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be written, and where."""

    reading: Reading
    chosen: Sequence[Lineage]
    segment: Session | None
    """Of the only chosen one, the segment that was asked for by its own id."""
    logical: bool
    output: str | None
    folder: Path
    """Where files go that are not told where."""
    force: bool
    redactor: Redactor | None
    """None: everything as it is."""
    zone: tzinfo | None
    at: float

    def documents(self) -> Iterator[Document]:
        """Each conversation as a whole."""
        return (self._clean(self.reading.whole(one)) for one in watched("Exporting", self.chosen))

    def pages(self) -> Iterator[Document]:
        """As `--lineage` says: each conversation as a whole, or each of its segments."""
        if self.logical:
            return self.documents()
        if self.segment is not None:
            return iter([self._clean(self.reading.single(self.segment, self.chosen[0]))])
        segments = [(segment, one) for one in self.chosen for segment in one.segments]
        return (self._clean(self.reading.single(*pair)) for pair in watched("Exporting", segments))

    def lines(self) -> Iterator[str]:
        """Every segment with every row."""
        for lineage in watched("Exporting", self.chosen):
            for record, rows in self.reading.records(lineage):
                if self.redactor is None:
                    yield from records.line(record, rows)
                else:
                    clean = redaction.record(record, self.redactor)
                    yield from records.line(clean, redaction.messages(rows, self.redactor))

    def _clean(self, shown: Document) -> Document:
        return shown if self.redactor is None else redaction.document(shown, self.redactor)


def jsonl(job: Job) -> tuple[Written, ...]:
    """One file, a line a session."""
    return put(_needed(job.output), job.lines(), force=job.force)


def page(job: Job) -> tuple[Written, ...]:
    """One file in HTML."""
    pieces = html.page(tuple(job.documents()), exported_at=job.at, zone=job.zone)
    return put(_needed(job.output), pieces, force=job.force)


def texts(job: Job, suffix: str) -> tuple[Written, ...]:
    """A file a session in Markdown or Quarto, and the manifest."""
    write = {"md": markdown.markdown, "qmd": markdown.quarto}[suffix]
    if job.output == STDOUT:
        shown = tuple(job.pages())
        if len(shown) != 1:
            raise UserError(f"Only one document goes to stdout; these are {len(shown)}. Name a folder.")
        show(write(shown[0], exported_at=job.at, zone=job.zone))
        return ()
    folder, shown = new_folder(job.output, job.folder), tuple(job.pages())
    places = [within(folder, markdown.file_name(one.session, suffix), force=job.force) for one in shown]
    written = [
        (one, files.write(place, write(one, exported_at=job.at, zone=job.zone)))
        for one, place in watched("Writing", list(zip(shown, places, strict=True)))
    ]
    manifest.update(folder, written, form=suffix, exported_at=job.at)
    return tuple(one for _, one in written)


def traces(job: Job) -> tuple[Written, ...]:
    """One trace to stdout or a file, several into a folder."""
    if len(job.chosen) == 1:
        (one,) = job.documents()
        return put(job.output or STDOUT, trace.trace(one), force=job.force)
    if job.output == STDOUT:
        raise UserError(f"Only one trace goes to stdout; these are {len(job.chosen)}. Name a folder.")
    folder = new_folder(job.output, job.folder)
    shown = tuple(job.documents())
    places = [within(folder, f"{files.plain(one.session.id)}.trace.jsonl", force=job.force) for one in shown]
    return tuple(files.write(place, trace.trace(one)) for one, place in zip(shown, places, strict=True))


def said_as_lines(job: Job) -> tuple[Written, ...]:
    """What people said, a line each."""
    return put(job.output or STDOUT, chain.from_iterable(map(prompts.jsonl, job.documents())), force=job.force)


def said_as_text(job: Job) -> tuple[Written, ...]:
    """What people said, as Markdown."""
    pieces = (prompts.markdown(one, job.zone) for one in job.documents())
    return put(job.output or STDOUT, chain.from_iterable(pieces), force=job.force)


Write = Callable[[Job], Iterable[Written]]

FORMATS: Mapping[str, Write] = {
    "jsonl": jsonl,
    "html": page,
    "md": lambda job: texts(job, "md"),
    "qmd": lambda job: texts(job, "qmd"),
    "trace": traces,
}
PROMPTS: Mapping[str, Write] = {"jsonl": said_as_lines, "md": said_as_text}


def _needed(output: str | None) -> str:
    if output is None:
        raise UserError("Name the file to write, or - for stdout.")
    return output
