"""What every HTTP door of Hermes has in common: one shape of refusal, one way to read a JSON body."""

import json
from collections.abc import Mapping
from typing import TypeVar

from aiohttp import web

from hermes.errors import HermesError

T = TypeVar("T")

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
"""The word for a status in the vocabulary of OpenAI-compatible clients; see `Problem.type` for the rest."""

_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


class Problem(HermesError):
    """A request that is not answered as asked: raised by handlers, turned into a response by the server.

    `code` is for programs, the message for people; `param` names the member of the request that is at fault.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    @property
    def type(self) -> str:
        """The family of the error, as OpenAI-compatible clients sort them."""
        return _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    def body(self) -> dict[str, object]:
        """The error as a JSON object: `{"error": {message, type, param, code}}`."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}

    def response(self) -> web.Response:
        """The error as the answer to its request."""
        return web.json_response(self.body(), status=self.status, headers=self.headers)


async def read_json(request: web.Request) -> dict[str, object]:
    """The JSON object in the request's body. Raises Problem 400; the server's size limit raises 413."""
    try:
        body: object = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}. Send one JSON object.", code="invalid_json") from error
    if not isinstance(body, dict):
        raise Problem(400, "The body must be a JSON object, such as {}.", code="invalid_json")
    return body


def member(body: Mapping[str, object], name: str, kind: type[T], default: T) -> T:
    """The member `name` of a JSON object; `default` where it is missing or null.

    Raises Problem 400 when it is not exactly of `kind` (a bool is no whole number).
    """
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not kind:
        raise Problem(400, f"`{name}` must be {_NAMES[kind]}.", code="invalid_type", param=name)
    return value
