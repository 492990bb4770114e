"""Lines out of a pipe."""

import os
from collections.abc import AsyncIterator

from hermes.cli.lines import Pipe


async def lines(*chunks: bytes) -> list[str]:
    """What is read from a pipe into which `chunks` are written one by one."""
    return [line async for line in _read(chunks)]


async def _read(chunks: tuple[bytes, ...]) -> AsyncIterator[str]:
    reader, writer = os.pipe()
    try:
        for chunk in chunks:
            os.write(writer, chunk)
        os.close(writer)
        pipe = Pipe(reader)
        while (line := await pipe.read()) is not None:
            yield line
    finally:
        os.close(reader)


async def test_a_pipe_gives_its_lines_and_then_its_end() -> None:
    assert await lines(b"one\ntw", b"o\r\n\nlast") == ["one", "two", "", "last"]


async def test_a_character_in_two_chunks_stays_whole() -> None:
    assert await lines("你好".encode()[:4], "你好".encode()[4:]) == ["你好"]


async def test_bytes_that_are_no_text_are_marked_and_end_nothing() -> None:
    assert await lines(b"ab\xff\nnext\xe4") == ["ab\ufffd", "next\ufffd"]


async def test_an_empty_pipe_is_at_its_end() -> None:
    assert await lines() == []
