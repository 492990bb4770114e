"""Writes the pages that follow from the code: configuration.md, commands.md and the table of addresses in http.md.

    python docs/generate.py            write them
    python docs/generate.py --check    write nothing; exit 1 and name the pages that are not current

Keys, types and defaults come from the pydantic models, the meaning of a key from its comment in
deploy/config.example.yaml, commands from the command line's own table, chat commands from theirs.
"""

import ast
import asyncio
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from hermes.adapters import registry
from hermes.adapters.base import CanServe, Guard, LooseBookmarks, Platform, Route, Surroundings
from hermes.cli import commands as shell
from hermes.cli.table import Command, Parameter
from hermes.cli.unit import SYSTEM_COMMAND, SYSTEM_HOME, Service
from hermes.clock import SystemClock
from hermes.gateway import commands as chat
from hermes.gateway.choices import ALWAYS_ON, CREDENTIALS, KEYS
from hermes.gateway.config import Config
from hermes.gateway.http.browse import Browser
from hermes.gateway.http.doors import Doors
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.http.server import Readiness, own_routes
from hermes.sessions.memory.store import MemoryStore
from hermes.texts import Texts

DOCS = Path(__file__).parent
EXAMPLE = DOCS.parent / "deploy" / "config.example.yaml"

ROUTES_BEGIN = "<!-- The table is written by docs/generate.py. -->\n"
ROUTES_END = "<!-- End of the written table. -->\n"

Schema = Mapping[str, Any]


def pages() -> dict[Path, str]:
    """Every generated page with its text."""
    http = DOCS / "http.md"
    return {
        DOCS / "configuration.md": configuration(),
        DOCS / "commands.md": commands(),
        DOCS.parent / "hermes.service": Service(command=SYSTEM_COMMAND, home=SYSTEM_HOME, is_system=True).text,
        http: _between(http.read_text(encoding="utf-8"), addresses()),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check; gives the exit code."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is not current. Run: make docs")
        return 1 if stale else 0
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# -- configuration ------------------------------------------------------------------------------------------------

CONFIGURATION = """# Configuration

*This page is written by `docs/generate.py`. Change the models or the comments of
[`deploy/config.example.yaml`](../deploy/config.example.yaml), then run `make docs`.*

Hermes reads `$HERMES_HOME/config.yaml` (`~/.hermes/config.yaml` unless `HERMES_HOME` says otherwise). Without the file
everything has its default. Unknown keys are errors, and all mistakes are shown at once, each with its place.
`${{NAME}}` is taken from `$HERMES_HOME/.env`, then from the environment, so that secrets stay out of the file.
A change takes effect at the next start. Keys marked *reserved* are checked and accepted, so that a configuration
stays valid when their feature comes; today they change nothing.

## From the environment

{environment}
## Keys

{keys}
## Platforms

A platform is on when it is named under `platforms`, or when its credentials are in the environment, unless it says
`enabled: false`. `web` and `api_server` need no credentials and are on by themselves. A second account is a second
block with a label, such as `web@work`. Every block takes these keys:

{every}
{platforms}"""


RESERVED = (
    "auxiliary.compression",
    "auxiliary.speech_to_text",
    "auxiliary.vision",
    "budgets",
    "compression.hygiene_failure_cooldown_seconds",
    "compression.hygiene_timeout_seconds",
    "compression.idle_compact_after_seconds",
    "compression.progress_notices",
    "home_channel",
    "mcp_servers",
    "reset_by_platform",
    "reset_by_type",
    "session_reset",
)
"""Keys, and blocks with all that is in them, that nothing reads yet; a test holds this list to the code."""


def configuration() -> str:
    """docs/configuration.md."""
    schema = Config.model_json_schema()
    every = _rows(schema["$defs"]["PlatformBlock"], schema, PLATFORM_KEYS)
    return CONFIGURATION.format(
        environment=table(("variable", "stands for"), _environment()),
        keys=table(("key", "type", "default", ""), _rows(schema, schema, meanings(EXAMPLE))),
        every=table(("key", "type", "default", ""), every),
        platforms="\n".join(map(_platform, built_in())),
    )


PLATFORM_KEYS = {
    "enabled": "`null`: on, because it is named",
    "allowed_users": "stable ids; not empty: only these people, and no pairing",
    "home_channel": "a chat id of the platform",
}


def _environment() -> Iterator[tuple[str, str]]:
    yield "`HERMES_HOME`", "the home folder, `~/.hermes` by default"
    for provider, variable in KEYS.items():
        yield f"`{variable}`", f"the key of {provider}, where `model.api_key` is null"
    available = {platform.name for platform in built_in()}
    for name in sorted(available & CREDENTIALS.keys()):
        for setting, variable in CREDENTIALS[name].items():
            yield f"`{variable}`", f"`platforms.{name}.{setting}`"


def built_in() -> list[Platform[Any]]:
    """The platforms that come with Hermes, by name."""
    offered = distribution("hermes-gateway").entry_points.select(group=registry.GROUP)
    return [registry.find(name) for name in sorted(offered.names)]


def _platform(platform: Platform[Any]) -> str:
    model: type[BaseModel] = platform.config
    schema = model.model_json_schema()
    rows = list(_rows(schema, schema, attribute_docs(model)))
    body = table(("key", "type", "default", ""), rows) if rows else "Nothing of its own to set.\n"
    return f"### `platforms.{platform.name}`\n\n{body}"


def _rows(block: Schema, schema: Schema, notes: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """A row a key; blocks inside are walked, and named with dots."""
    for name, facts in block.get("properties", {}).items():
        path, inner = f"{prefix}{name}", _block(facts, schema)
        if inner is None:
            yield f"`{path}`", _type(facts, schema), f"`{_default(facts)}`", _note(path, notes)
        else:
            said = {path: _first_line(inner.get("description", ""))}
            yield f"**`{path}`**", "", "", _note(path, {**said, **notes})
            yield from _rows(inner, schema, notes, f"{path}.")


def _note(path: str, notes: Mapping[str, str]) -> str:
    reserved = any(f"{path}.".startswith(f"{one}.") for one in RESERVED)
    return " ".join(filter(None, ("*reserved*" if reserved else "", notes.get(path))))


def _block(facts: Schema, schema: Schema) -> Schema | None:
    """The block that a key holds, if it holds one."""
    return _resolve(facts, schema) if "$ref" in facts else None


def _resolve(facts: Schema, schema: Schema) -> Schema:
    found: Schema = schema["$defs"][facts["$ref"].rpartition("/")[2]]
    return found


def _default(facts: Schema) -> str:
    return json.dumps(facts["default"], ensure_ascii=False) if "default" in facts else "required"


BOUNDS = {"gt": ">", "exclusiveMinimum": ">", "ge": "≥", "minimum": "≥", "le": "≤", "maximum": "≤"}
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}


def _type(facts: Schema, schema: Schema) -> str:
    """The type of a value in words, with its bounds."""
    if "anyOf" in facts:
        return " or ".join(_type(one, schema) for one in facts["anyOf"])
    if "$ref" in facts:
        return f"a block of {_keys(_resolve(facts, schema))}"
    if "enum" in facts:
        return " · ".join(f"`{one}`" for one in facts["enum"])
    if facts["type"] == "array":
        return f"list of {_type(facts['items'], schema)}"
    if facts["type"] == "object":
        return _mapping(facts, schema)
    bounds = [f"{sign} {facts[name]:g}" for name, sign in BOUNDS.items() if name in facts]
    return f"{WORDS[facts['type']]} {' and '.join(bounds)}".strip()


def _mapping(facts: Schema, schema: Schema) -> str:
    names = facts.get("propertyNames", {}).get("enum")
    by = f"by {' · '.join(f'`{one}`' for one in names)}" if names else "by name"
    values = facts.get("additionalProperties")
    if isinstance(values, Mapping) and "$ref" in values:
        return f"blocks {by}, each of {_keys(_resolve(values, schema))}"
    return f"mapping {by}"


def _keys(block: Schema) -> str:
    return ", ".join(f"`{name}`" for name in block["properties"])


def meanings(example: Path) -> dict[str, str]:
    """What the comments of an example say of its keys, by dotted path."""
    text = example.read_text(encoding="utf-8")
    return dict(_comments(yaml.compose(text), text.splitlines(), ""))


def _comments(node: yaml.Node | None, lines: Sequence[str], prefix: str) -> Iterator[tuple[str, str]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        _, mark, comment = lines[key.start_mark.line].partition(" # ")
        if mark:
            yield path, comment.strip()
        yield from _comments(value, lines, f"{path}.")


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """The strings below a model's attributes, each on one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(str(said.value.value).split())
        for field, said in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
    }


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


# -- commands -----------------------------------------------------------------------------------------------------

COMMANDS_PAGE = """# Commands

*This page is written by `docs/generate.py` from the tables of the command line and of the chats.*

## In a shell

`hermes` alone is `hermes chat`, and takes `-c` and `-r` too. Every command takes `--help`; `hermes --version` shows the
version. Exit codes: 0 done, 1 failed, 2 used wrongly, 78 the configuration, the home folder or the store cannot be used
as it is, 130 ended by Ctrl-C.

{shell}
## In a chat

A message that starts with `/` and a name is a command; `/name@bot` is understood too. **At once** means that it does
not wait for the answer that is being written.

{chat}
Unknown names are answered with the nearest known one. `/start` is taken in silence. In the terminal, `/quit` and
`/exit` leave.
"""


def commands() -> str:
    """docs/commands.md."""
    return COMMANDS_PAGE.format(
        shell="\n".join(map(_command, shell.COMMANDS)),
        chat=table(("command", "does", "at once"), _chat_commands()),
    )


def _command(command: Command) -> str:
    takes = [one for one in command.parameters if not one.names[0].startswith("-")]
    title = " ".join(("hermes", command.path, *(_value(one) for one in takes)))
    known = f"\n{table(('', ''), map(_parameter, command.parameters))}" if command.parameters else ""
    return f"### `{title}`\n\n{command.does}\n{known}"


def _parameter(parameter: Parameter) -> tuple[str, str]:
    if not parameter.names[0].startswith("-"):
        return f"`{_value(parameter)}`", parameter.does
    return f"`{' '.join(filter(None, (', '.join(parameter.names), _value(parameter))))}`", parameter.does


def _value(parameter: Parameter) -> str:
    """How the value of a parameter is written; nothing for a switch."""
    settings = parameter.settings
    name = settings.get("metavar") or "|".join(map(str, settings.get("choices", ())))
    return f"[{name}]" if settings.get("nargs") == "?" else str(name)


def _chat_commands() -> Iterator[tuple[str, str, str]]:
    texts = Texts("en")
    for command in chat.COMMANDS.values():
        if not command.hidden:
            name, _, does = texts.say(f"help.{command.name}").partition(" – ")
            yield f"`{name}`", does, "yes" if command.urgent else ""


# -- addresses ----------------------------------------------------------------------------------------------------

CALLERS = {Guard.OPEN: "anybody", Guard.OWNER: "the owner"}


def addresses() -> str:
    """The table of docs/http.md."""
    rows = ((f"`{route.method} {route.path}`", CALLERS[route.guard]) for route in routes())
    return table(("address", "who may call it"), rows)


def routes() -> list[Route]:
    """Everything that the gateway's server answers with the platforms that are on by themselves."""
    clock = SystemClock()
    doors = Doors("only the addresses are wanted", clock)
    own = own_routes(doors, lambda: Readiness(ready=True, word="ready"), Metrics())
    found = [*own, *doors.routes(), *asyncio.run(_mounted()), *Browser(MemoryStore(), clock).routes()]
    return sorted(found, key=lambda route: (route.path, route.method))


async def _mounted() -> list[Route]:
    """What the built-in platforms mount."""
    async with AsyncExitStack() as stack:
        adapters = [
            await stack.enter_async_context(platform.open(platform.config(), around(instance)))
            for instance, platform in zip(ALWAYS_ON, map(registry.find, ALWAYS_ON), strict=True)
        ]
        return [route for adapter in adapters if isinstance(adapter, CanServe) for route in adapter.routes()]


def around(instance: str) -> Surroundings:
    """What an adapter needs to be opened here."""
    clock = SystemClock()
    return Surroundings(instance=instance, clock=clock, cache=DOCS, bookmarks=LooseBookmarks(clock))


def _between(page: str, written: str) -> str:
    """`page` with what stands between the two marks replaced."""
    before, _, rest = page.partition(ROUTES_BEGIN)
    _, _, after = rest.partition(ROUTES_END)
    return f"{before}{ROUTES_BEGIN}\n{written}\n{ROUTES_END}{after}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
