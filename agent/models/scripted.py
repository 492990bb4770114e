"""A model that answers from a script: for demonstrations and tests, without a network or a neural net.

A script is a YAML list of rules. The first rule that fits the request answers it::

    - when: "weather in (\\w+)"       # regular expression, searched in the user's last message, case ignored
      call: {name: web_search, arguments: {query: "{text}"}}    # or a list of calls
    - after_tool: web_search          # the last line is this tool's result
      say: "I found this: {result}"
      chunks: 5                       # pieces that the words arrive in
      delay: 0.5                      # seconds before the first piece
      pause: 0.1                      # seconds between pieces
    - when: "^fail"
      fail: unavailable               # unavailable | overflow | bad_transcript
      times: 2                        # used up after two requests
    - say: "You are request {n}. You said: {text}"

`when` and `after_tool` may be combined. A rule without `after_tool` does not answer tool results. `{text}` is the
user's last message, `{result}` the last tool's result, `{n}` counts requests from 1; they also work inside
`arguments`. What no rule fits is echoed.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from hermes import ids
from hermes.agent.models.base import CallTools, Card, Finished, Line, ModelEvent, ModelRequest, Stop, TextDelta
from hermes.clock import Clock
from hermes.errors import BadTranscript, ConfigError, ContextOverflow, ModelError, ModelUnavailable
from hermes.sessions.model import Role, ToolCall, Usage

CONTEXT_LENGTH = 128_000
CHARACTERS_PER_TOKEN = 4
"""What the pretended token counts are made of."""

_FAILURES: dict[str, Callable[[str], ModelError]] = {
    "unavailable": ModelUnavailable,
    "overflow": ContextOverflow,
    "bad_transcript": BadTranscript,
}


class ScriptedCall(BaseModel):
    """A tool call in a script."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


class Rule(BaseModel):
    """One rule of a script; the module's docstring explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: re.Pattern[str] | None = None
    after_tool: str | None = None
    say: str = ""
    call: Annotated[tuple[ScriptedCall, ...], BeforeValidator(_listed)] = ()
    chunks: int = Field(default=3, ge=1)
    delay: float = Field(default=0, ge=0)
    pause: float = Field(default=0, ge=0)
    fail: Literal["unavailable", "overflow", "bad_transcript"] | None = None
    times: int | None = Field(default=None, ge=1)

    def fits(self, scene: "_Scene") -> bool:
        """The rule speaks to this request."""
        heard = self.when is None or re.search(self.when.pattern, scene.text, re.IGNORECASE) is not None
        return heard and self.after_tool == scene.tool


ECHO = (Rule(say="You said: {text}"),)
"""The script of a model that was given none."""
_ECHO_RESULT = Rule(say="The tool said: {result}")


def load(path: Path) -> tuple[Rule, ...]:
    """The rules in the YAML file `path`. Raises ConfigError that names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.compose(text, Loader=yaml.SafeLoader)
        return TypeAdapter(tuple[Rule, ...]).validate_python(yaml.safe_load(text))
    except OSError as error:
        raise ConfigError(f"The script {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The script {path} is not UTF-8 text.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}.") from error
    except ValidationError as error:
        faults = "\n".join(_fault(path, document, fault["loc"], fault["msg"]) for fault in error.errors())
        raise ConfigError(f"{faults}\nA script is a list of rules, see hermes.agent.models.scripted.") from error


def _fault(path: Path, document: yaml.Node | None, where: tuple[int | str, ...], what: str) -> str:
    name = ".".join(str(part) for part in where[1:])
    return f"{path}:{_line(document, where)}: {name + ': ' if name else ''}{what}"


def _line(node: yaml.Node | None, where: tuple[int | str, ...]) -> int:
    """The line, counted from 1, of the part of the document that `where` leads to, as far as it exists."""
    line = node.start_mark.line + 1 if node else 1
    for step in where:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == step), None)
        if node is None:
            break
        line = node.start_mark.line + 1
    return line


class _Scene:
    """A request as rules see it."""

    def __init__(self, request: ModelRequest, number: int) -> None:
        last = request.lines[-1] if request.lines else Line(role=Role.USER, text="")
        self.number = number
        self.text = next((line.text for line in reversed(request.lines) if line.role is Role.USER), "")
        self.result = last.text if last.role is Role.TOOL else ""
        self.tool = _tool_name(last, request.lines) if last.role is Role.TOOL else None

    def fill(self, template: str, quote: Callable[[str], str] = str) -> str:
        """`template` with its placeholders replaced at once, so that no value is searched for placeholders."""
        values = {"{text}": self.text, "{result}": self.result, "{n}": str(self.number)}
        return re.sub(r"\{(?:text|result|n)\}", lambda found: quote(values[found[0]]), template)


def _tool_name(result: Line, lines: tuple[Line, ...]) -> str:
    calls = {call.id: call.name for line in lines for call in line.tool_calls}
    return result.tool_name or calls.get(result.tool_call_id or "", "")


def _inside_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class ScriptedChat:
    """A ChatModel that follows `rules`, in order; see the module's docstring. Waits go through `clock`."""

    def __init__(
        self,
        clock: Clock,
        rules: tuple[Rule, ...] = ECHO,
        *,
        name: str = "scripted",
        context_length: int = CONTEXT_LENGTH,
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._card = Card(provider="scripted", name=name, context_length=context_length)
        self._requests = 0
        self._used: Counter[int] = Counter()

    @property
    def card(self) -> Card:
        return self._card

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel."""
        self._requests += 1
        scene = _Scene(request, self._requests)
        rule = self._rule(scene)
        await self._wait(rule.delay)
        if rule.fail:
            raise _FAILURES[rule.fail](f"The script lets request {scene.number} fail: {rule.fail}.")
        said = scene.fill(rule.say)
        for number, piece in enumerate(_pieces(said, rule.chunks)):
            await self._wait(rule.pause if number else 0)
            yield TextDelta(piece)
        if calls := tuple(_calls(rule, scene)):
            yield CallTools(calls)
        yield Finished(
            usage=Usage(
                input_tokens=_tokens(request.system, *(line.text for line in request.lines)),
                output_tokens=_tokens(said),
            ),
            stop=Stop.TOOLS if calls else Stop.END,
            model=self._card.name,
        )

    def _rule(self, scene: _Scene) -> Rule:
        for index, rule in enumerate(self._rules):
            if rule.fits(scene) and (rule.times is None or self._used[index] < rule.times):
                self._used[index] += 1
                return rule
        return ECHO[0] if scene.tool is None else _ECHO_RESULT

    async def _wait(self, seconds: float) -> None:
        if seconds:
            await self._clock.sleep(seconds)

    async def close(self) -> None:
        """There is nothing to give back."""


def _pieces(text: str, count: int) -> Iterator[str]:
    """`text` in up to `count` pieces of nearly equal length, none empty."""
    size = max(-(-len(text) // count), 1)
    return (text[start : start + size] for start in range(0, len(text), size))


def _calls(rule: Rule, scene: _Scene) -> Iterator[ToolCall]:
    for call in rule.call:
        arguments = scene.fill(json.dumps(call.arguments, ensure_ascii=False), _inside_json)
        yield ToolCall(id=ids.fresh("call"), name=call.name, arguments=arguments)


def _tokens(*texts: str) -> int:
    return sum(len(text) for text in texts) // CHARACTERS_PER_TOKEN + 1
