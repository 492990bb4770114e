"""The program of the embedded model's process: llama.cpp's own HTTP server on the loopback interface.

Run as `python -m hermes.agent.models.local_server MODEL.gguf --name NAME --context TOKENS --threads N`. When the
model is loaded it prints one line of JSON to stdout, `{"url": …, "key": …}`; other users of the machine can reach
the port, so requests need the key. It ends when its stdin is closed, whatever became of the process that held the
other end. Native code runs here so that its death is only this process's.
"""

import argparse
import json
import os
import secrets
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xllamacpp

NICENESS = 5
"""The chat gateway comes first, the thinking second."""
CACHE_MIB = 128
"""Memory for prompts of conversations that may come back."""


def main() -> None:
    """Serves until stdin is closed."""
    options = _options()
    os.nice(NICENESS)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    # The native library logs to stdout too; only the greeting may arrive there.
    greeting = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    import xllamacpp

    key = secrets.token_urlsafe()
    server = xllamacpp.Server(_params(xllamacpp.CommonParams(), options, key))
    with greeting:
        json.dump({"url": server.listening_address, "key": key}, greeting)
        greeting.write("\n")
    threading.Event().wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serves a GGUF model on the loopback interface until stdin closes.")
    parser.add_argument("model")
    parser.add_argument("--name", required=True)
    parser.add_argument("--context", type=int, required=True, help="tokens of the window")
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def _params(params: "xllamacpp.CommonParams", options: argparse.Namespace, key: str) -> "xllamacpp.CommonParams":
    params.model.path = options.model
    params.model_alias = {options.name}
    params.n_ctx = options.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = CACHE_MIB
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.endpoint_slots = False
    params.warmup = False
    return params


def _end_with_stdin() -> None:
    stdin = sys.stdin.fileno()
    while os.read(stdin, 1024):
        pass
    # Native threads do not take part in an orderly exit.
    os._exit(0)


if __name__ == "__main__":
    main()
