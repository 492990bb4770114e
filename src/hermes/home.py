"""The folder in which Hermes lives: where it is, what lies where, and whether it can be used.

Nothing here opens the store: SQLite alone touches state.db and its companions.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import ConfigError

MOUNTS = Path("/proc/mounts")

FAR_FILE_SYSTEMS = {
    "9p": "a folder shared with a virtual machine (9p)",
    "afs": "a network file system (AFS)",
    "beegfs": "a network file system (BeeGFS)",
    "ceph": "a network file system (Ceph)",
    "cifs": "a network share (CIFS)",
    "fuse.ceph": "a network file system (Ceph)",
    "fuse.glusterfs": "a network file system (GlusterFS)",
    "fuse.rclone": "remote storage (rclone)",
    "fuse.s3fs": "remote storage (s3fs)",
    "fuse.sshfs": "a network file system (sshfs)",
    "glusterfs": "a network file system (GlusterFS)",
    "lustre": "a network file system (Lustre)",
    "nfs": "a network file system (NFS)",
    "nfs4": "a network file system (NFS)",
    "prl_fs": "a folder shared with a virtual machine (Parallels)",
    "smb3": "a network share (SMB)",
    "smbfs": "a network share (SMB)",
    "vboxsf": "a folder shared with a virtual machine (VirtualBox)",
    "virtiofs": "a folder shared with a virtual machine (virtiofs)",
}
"""File systems whose locks or shared memory do not hold between machines: SQLite's WAL needs both."""


@dataclass(frozen=True, slots=True)
class Home:
    """What lies where below `$HERMES_HOME`. Only names: nothing is created by asking."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def env(self) -> Path:
        return self.root / ".env"

    @property
    def database(self) -> Path:
        return self.root / "state.db"

    @property
    def mirror(self) -> Path:
        """The routing index as a file for people and scripts; never read back."""
        return self.root / "sessions" / "sessions.json"

    @property
    def saved(self) -> Path:
        return self.root / "sessions" / "saved"

    @property
    def exports(self) -> Path:
        return self.root / "session-exports"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def memory(self) -> Path:
        return self.root / "memory"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def terminals(self) -> Path:
        """Where open terminals sign in."""
        return self.cache / "terminals"

    @property
    def lock(self) -> Path:
        return self.root / "gateway.lock"

    @property
    def web_token(self) -> Path:
        return self.root / "web-token"

    @property
    def backups(self) -> Path:
        return self.root / "backups"


def locate(environ: Mapping[str, str]) -> Path:
    """`HERMES_HOME`, or `~/.hermes`; absolute, not necessarily there. Raises ConfigError when there is no `~`."""
    chosen = environ.get("HERMES_HOME", "").strip()
    try:
        path = Path(chosen).expanduser() if chosen else _user_home(environ) / ".hermes"
    except RuntimeError as error:
        raise ConfigError(
            "No home directory is known for this user. Set HERMES_HOME to a folder for Hermes, then start again."
        ) from error
    return path.absolute()


def open_home(root: Path) -> Home:
    """The home at `root`, made if missing, closed to other users. Raises ConfigError when it cannot be used.

    The mode is corrected only where the folder belongs to this user: a shared folder stays as its owner wants it.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.stat()
        if facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) != 0o700:
            root.chmod(0o700)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(
            f"Hermes keeps its files in {root}, but a file is in the way: {error.filename}. "
            "Move the file away, or choose another folder with HERMES_HOME."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"Hermes cannot make its folder {root}: {error.strerror}. "
            "Give this user the right to, or choose another folder with HERMES_HOME."
        ) from error
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(
            f"Hermes cannot read and write its folder {root}. "
            "Give it to this user (chown), or choose another folder with HERMES_HOME."
        )
    return Home(root)


def network_filesystem(path: Path, mounts: Path = MOUNTS) -> str | None:
    """A sentence when `path` lies where a database is not safe, else None. `mounts` is the kernel's table.

    Where there is no such table (not Linux) nothing is known and nothing is said.
    """
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    kind = FAR_FILE_SYSTEMS.get(_file_system_of(path.resolve(), table))
    if kind is None:
        return None
    return (
        f"{path} lies on {kind}, where file locks may not hold and the session store can be damaged. "
        "Set HERMES_HOME to a folder on a local disk."
    )


def _user_home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _file_system_of(path: Path, table: str) -> str:
    """The type of the innermost mount above `path`; of several on one point, the last is on top."""
    depth, found = -1, ""
    for line in table.splitlines():
        _, point, kind, *_ = line.split(" ")
        mounted = Path(_unescape(point))
        if path.is_relative_to(mounted) and len(mounted.parts) >= depth:
            depth, found = len(mounted.parts), kind
    return found


def _unescape(point: str) -> str:
    """The kernel writes blanks, tabs, line breaks and backslashes in octal."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
