"""`manifest.jsonl`: which file of an export folder holds what."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.errors import UserError
from hermes.sessions.exports.document import Document
from hermes.sessions.exports.files import Written, write
from hermes.sessions.exports.when import utc

NAME = "manifest.jsonl"


def update(folder: Path, written: Iterable[tuple[Document, Written]], *, form: str, exported_at: float) -> None:
    """Add a row for each file, in the place of an older one for the same. Raises UserError."""
    fresh = {one.path.name: _row(shown, one, form, exported_at) for shown, one in written}
    write(folder / NAME, _rows(folder / NAME, fresh))


def _rows(manifest: Path, fresh: dict[str, str]) -> Iterator[str]:
    """The rows of the manifest that stay, then the fresh ones."""
    for line in _lines(manifest):
        if _path(line) not in fresh:
            yield f"{line}\n"
    yield from fresh.values()


def _lines(manifest: Path) -> list[str]:
    try:
        return manifest.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{manifest} cannot be read: {error}. Move it away.") from error


def _path(line: str) -> str | None:
    """The file that a row is about; rows of other programs are nobody's business here."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    return facts.get("path") if isinstance(facts, dict) else None


def _row(shown: Document, written: Written, form: str, exported_at: float) -> str:
    facts = {
        "session_id": shown.session.id,
        "lineage_session_ids": list(shown.lineage),
        "path": written.path.name,
        "format": form,
        "message_count": shown.session.message_count,
        "sha256": written.sha256,
        "exported_at": utc(exported_at),
    }
    return json.dumps(facts, ensure_ascii=False) + "\n"
