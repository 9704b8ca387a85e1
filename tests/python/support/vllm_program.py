# SPDX-License-Identifier: Apache-2.0
"""vLLM's answers by a model: run as a program, with the arguments of `vllm serve`. It finds
plug-ins by its own loader, in each of its processes."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

PROMPT = [1, 5, 9, 17, 33]


def main(arguments: list[str]) -> None:
    vllm: Any = import_module("vllm")
    utils: Any = import_module("vllm.engine.arg_utils")
    parsers: Any = import_module("vllm.utils.argparse_utils")
    parser = utils.EngineArgs.add_cli_args(parsers.FlexibleArgumentParser())
    model = vllm.LLM.from_engine_args(utils.EngineArgs.from_cli_args(parser.parse_args(arguments)))
    greedy = vllm.SamplingParams(temperature=0, max_tokens=8, detokenize=False, logprobs=3)
    found = model.generate([{"prompt_token_ids": PROMPT}], greedy)[0].outputs[0]
    logits = [{token: entry.logprob for token, entry in place.items()} for place in found.logprobs]
    print("FOUND " + json.dumps({"tokens": list(found.token_ids), "logits": logits}))


if __name__ == "__main__":
    main(sys.argv[1:])
