"""Every error that Hermes raises on purpose, sorted by what its caller should do.

HermesError
├── ConfigError              say it and exit 78; the service manager does not restart
├── UserError                its text is the reply
├── PlatformError            one platform's outside world
│   ├── AuthFailed           park the adapter and tell the owner
│   ├── Unreachable          try again with back-off
│   ├── RateLimited          try again after `retry_after`
│   ├── Rejected             never try this message again as it is
│   └── ChatMoved            the chat has another id: send there
├── ModelError
│   ├── ModelUnavailable     back off, then the fallback model, then a plain sentence
│   ├── ContextOverflow      compress, then try once more
│   └── BadTranscript        repair the history, then try once more
├── StoreError
│   ├── SessionNotFound
│   ├── AmbiguousSession     show the candidates
│   ├── TitleTaken           show who has it
│   ├── StillNeeded          another conversation shows its rows: that one goes first
│   ├── Changed              it is not what it was when it was looked at: look again
│   ├── SchemaTooNew         refuse without a write
│   ├── StoreLocked          somebody else writes; the words are kept and tried again
│   ├── StoreUnavailable     the file cannot be used at all
│   ├── TakenBack            the events are somebody else's now: look again
│   ├── LeaseBusy            another turn thinks about this conversation
│   └── LeaseLost            a newer turn owns it: write nothing more
├── TurnLimit                a turn reached a configured bound
└── CompressionStuckError    tell the person to open a new session
"""

from collections.abc import Sequence
from enum import StrEnum


class HermesError(Exception):
    """The root: its text is fit to be read by a person."""


class ConfigError(HermesError):
    """The configuration or the home folder cannot be used as it is."""


class UserError(HermesError):
    """A person asked for something that cannot be done; the text says what to do instead."""


class PlatformError(HermesError):
    """A chat platform did not do what it was asked.

    `detail` never holds a secret: adapters strip their tokens before they raise.
    """

    def __init__(self, platform: str, detail: str) -> None:
        super().__init__(f"{platform}: {detail}")
        self.platform = platform
        self.detail = detail


class AuthFailed(PlatformError):
    """The credentials are refused; trying again cannot help."""


class Unreachable(PlatformError):
    """No answer, or a broken one. `maybe_done` says that the request may have taken effect."""

    def __init__(self, platform: str, detail: str, *, maybe_done: bool = False) -> None:
        super().__init__(platform, detail)
        self.maybe_done = maybe_done


class RateLimited(PlatformError):
    """The platform asks for patience, in seconds."""

    def __init__(self, platform: str, *, retry_after: float) -> None:
        super().__init__(platform, f"rate limited for {retry_after:g} s")
        self.retry_after = retry_after


class Refusal(StrEnum):
    """Why a platform will never take a message as it is."""

    TOO_LONG = "too_long"
    BAD_FORMAT = "bad_format"
    FORBIDDEN = "forbidden"
    GONE = "gone"


class Rejected(PlatformError):
    """The platform refuses this message for good."""

    def __init__(self, platform: str, refusal: Refusal, detail: str = "") -> None:
        super().__init__(platform, detail or refusal.value)
        self.refusal = refusal


class ChatMoved(PlatformError):
    """The chat goes on under the id `to`; nothing was shown."""

    def __init__(self, platform: str, to: str) -> None:
        super().__init__(platform, f"the chat has moved to {to}")
        self.to = to


class ModelError(HermesError):
    """A language model did not answer."""


class ModelUnavailable(ModelError):
    """The model cannot be reached, is overloaded or refuses the key. `retryable` says whether waiting can help."""

    def __init__(self, message: str, *, retryable: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class ContextOverflow(ModelError):
    """The request is longer than the model's window."""


class BadTranscript(ModelError):
    """The provider refuses the shape of the history. It says nothing about the key."""


class StoreError(HermesError):
    """The session store could not do what was asked."""


class SessionNotFound(StoreError, LookupError):
    """No session that the reader may see answers to this name."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"No session answers to {reference!r}. List them with: hermes sessions list")
        self.reference = reference


class AmbiguousSession(StoreError):
    """Several sessions start with what was typed."""

    def __init__(self, reference: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:8])
        super().__init__(f"{reference!r} fits several sessions: {shown}. Type more of the id.")
        self.reference = reference
        self.candidates = tuple(candidates)


class TitleTaken(StoreError):
    """Titles are unique; this one belongs to another conversation."""

    def __init__(self, title: str, holder: str, where: str) -> None:
        super().__init__(
            f"The title {title!r} belongs to session {holder} ({where}). "
            f"Choose another, or rename that one: hermes sessions rename {holder} NEW TITLE"
        )
        self.title = title
        self.holder = holder


class StillNeeded(StoreError):
    """A conversation cannot go while a branch of it shows its rows."""

    def __init__(self, conversation: str, branch: str) -> None:
        super().__init__(
            f"Session {conversation} cannot be deleted yet: {branch} branched off from it and shows its beginning. "
            f"Delete that one first: hermes sessions delete {branch} (or only hide this one: hermes sessions archive)"
        )
        self.branch = branch


class Changed(StoreError):
    """A conversation is not what it was when it was looked at."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"Conversation {conversation} has changed since it was read, so nothing of it was deleted. Run it again."
        )


class SchemaTooNew(StoreError):
    """The store was written by a newer Hermes."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}; this Hermes knows up to {known}. Nothing was changed. "
            "Install the newer Hermes again, or choose another folder with HERMES_HOME."
        )
        self.found = found
        self.known = known


class StoreLocked(StoreError):
    """Another process held the write lock longer than the caller could wait."""


class StoreUnavailable(StoreError):
    """The store cannot be opened or written: damaged, unreadable, or the disk is full."""


class TakenBack(StoreError):
    """Events of this step were settled, or taken up by another turn, in the meantime: look again."""


class LeaseBusy(StoreError):
    """Another turn holds this conversation. `place` says where, for people."""

    def __init__(self, place: str, expires_at: float) -> None:
        super().__init__(f"This conversation is busy in {place}.")
        self.place = place
        self.expires_at = expires_at


class LeaseLost(StoreError):
    """The turn's lease was taken over or ran out; nothing of it is written any more."""


class TurnLimit(HermesError):
    """A turn reached a configured bound: so many `steps`, or so many minutes of `time`."""

    def __init__(self, bound: str, limit: float) -> None:
        super().__init__(f"no answer within the limit of {limit:g} ({bound})")
        self.bound = bound
        self.limit = limit


class CompressionStuckError(HermesError, RuntimeError):
    """Compression could not shrink the history below 90 % of what it was. Both figures are tokens."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(f"{before} -> {after} tokens")
        self.before = before
        self.after = after
