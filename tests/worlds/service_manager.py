"""systemd's commands as far as Hermes uses them: scripts on PATH that write down how they were called."""

import json
import stat
from pathlib import Path

SCRIPT = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
call = [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(call) + "\\n")
for words, code, out, err in json.loads((folder / "answers").read_text()):
    if all(word in call for word in words):
        print(out, end="")
        print(err, end="", file=sys.stderr)
        sys.exit(code)
"""


class ServiceManager:
    """The commands lie in `folder`; give it as PATH."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("systemctl", "journalctl", "loginctl"):
            script = folder / name
            script.write_text(SCRIPT.format(python=python, folder=str(folder)), encoding="utf-8")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
        self._answers: list[tuple[list[str], int, str, str]] = []
        self._write()

    def will(self, *words: str, code: int = 0, out: str = "", err: str = "") -> None:
        """Calls that hold all these words are answered like this; all others succeed silently."""
        self._answers.append(([*words], code, out, err))
        self._write()

    def _write(self) -> None:
        (self.folder / "answers").write_text(json.dumps(self._answers), encoding="utf-8")

    @property
    def calls(self) -> list[str]:
        """How the commands were called, in order."""
        written = self.folder / "calls"
        if not written.exists():
            return []
        return [" ".join(json.loads(line)) for line in written.read_text(encoding="utf-8").splitlines()]
