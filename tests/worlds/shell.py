"""A person's shell: the real `hermes` command in child processes, on a home of its own and with a scripted model."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from hermes.home import Home

PATIENCE = 30.0
"""Seconds for a command that ends by itself, on a busy machine."""

Finished = subprocess.CompletedProcess[str]
Running = subprocess.Popen[str]


class Shell:
    """Commands on the home below `folder`. `rules` are the model's script; without any it echoes."""

    def __init__(self, folder: Path, *, rules: Sequence[Mapping[str, Any]] = (), **config: Any) -> None:
        self.home = Home(folder / "home")
        self.home.root.mkdir(mode=0o700)
        model = {"provider": "scripted"}
        if rules:
            script = folder / "script.yaml"
            script.write_text(yaml.safe_dump(list(rules)), encoding="utf-8")
            model["name"] = str(script)
        self.configure({"language": "en", "model": model, "gateway": {"http": {"port": 0}}, **config})

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the configuration anew."""
        self.home.config.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the real user's."""
        root = str(self.home.root)
        return {"PATH": os.environ["PATH"], "HERMES_HOME": root, "HOME": root, "LANG": "C.UTF-8", "TZ": "UTC"}

    def hermes(self, *arguments: str, typed: str = "", **environ: str) -> Finished:
        """Run a command to its end, with `typed` on its standard input."""
        return subprocess.run(
            command(*arguments),
            env={**self.environment, **environ},
            input=typed,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    @contextmanager
    def beside(self, *arguments: str) -> Iterator[Running]:
        """A command that runs while the block does, with pipes; killed at its end."""
        with subprocess.Popen(
            command(*arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def gateway(self) -> Iterator[Running]:
        """A gateway that takes messages."""
        with self.beside("gateway", "run") as process:
            assert process.stdout is not None
            assert "ready" in process.stdout.readline()
            yield process


def command(*arguments: str) -> list[str]:
    """How `hermes` is started."""
    return [sys.executable, "-m", "hermes", *arguments]
