"""LiteLLM's `trim_messages` as a strategy.

Library   litellm 1.106.2, `litellm.utils.trim_messages`
Run       proctor run sessions/ --strategy-cmd 'python3 litellm_trim.py --max-tokens 1500'

--max-tokens   tokens that the trimmed list may have, system prompt included
--trim-ratio   without `--max-tokens`: this part of the window that can be used (0.75)
--model        the model whose tokenizer counts, as LiteLLM names it (LiteLLM's default)

The function keeps no state, so it gets the whole history at every call. Messages go in as OpenAI's chat API has them,
the system prompt in front; where the system prompt alone is too long, LiteLLM shortens it, and that is lost here.
Lost on the way, too: thinking blocks. LiteLLM drops and shortens single messages and parts calls from their results:
many of its prompts a provider would refuse. It counts the whole list again for each message, so this program remembers the
count of each text; LiteLLM by itself takes minutes for a call over 200,000 tokens.
"""

import argparse
import functools
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Its own price list: no request when it is imported.

import litellm.utils  # noqa: E402
from litellm.litellm_core_utils import token_counter  # noqa: E402

from proctor_strategy import strategy  # noqa: E402

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--max-tokens", type=int)
options.add_argument("--trim-ratio", type=float, default=0.75)
options.add_argument("--model", default="")
options = options.parse_args()

token_counter._encoding_count = functools.lru_cache(maxsize=100_000)(token_counter._encoding_count)


@strategy(history="full", shape="openai", name="litellm_trim", kind="window")
def compact(messages, budget, ask):
    system = [{"role": "system", "content": budget.system}] if budget.system else []
    trimmed = litellm.utils.trim_messages(
        system + [{**message, "content": message["content"] or ""} for message in messages],
        model=options.model,
        max_tokens=options.max_tokens or int(options.trim_ratio * budget.effective),
    )
    # An empty content was written for the library's sake: back to what was given.
    return [{**message, "content": None} if message["content"] == "" and message.get("tool_calls") else message
            for message in trimmed if message["role"] != "system"]
