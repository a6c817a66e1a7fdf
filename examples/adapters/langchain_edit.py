"""LangChain's `ContextEditingMiddleware` with `ClearToolUsesEdit` as a strategy.

Library   langchain 1.4.7, `langchain.agents.middleware.ContextEditingMiddleware`; tiktoken 0.14.0 for `--counter cl100k`
Run       proctor run sessions/ --strategy-cmd 'python3 langchain_edit.py --trigger 100000 --keep 3'

--trigger          tokens from which on results are cleared (100000)
--keep             latest results that stay (3)
--clear-at-least   clearing stops when this many tokens are saved; 0 clears all but the kept ones (0)
--clear-inputs     the arguments of the calls are cleared, too
--exclude          names of tools whose results stay, by comma (none)
--placeholder      the text in place of a result ([cleared])
--counter          `approximate`: LangChain's own estimate; `cl100k`: tiktoken over texts, calls and results (approximate)
--count-system     the system prompt is the first message and is counted, as in an agent that has no `system_prompt` and
                   gets it so; otherwise the middleware does not count it

The middleware edits a copy for one request and leaves the agent's state as it is, so it gets the whole history at
every call; what is called is `wrap_model_call`. Messages go in as OpenAI's chat API has them. Lost on the way:
thinking blocks.
"""

import argparse

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, SystemMessage, convert_to_messages, convert_to_openai_messages

from proctor_strategy import strategy

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--trigger", type=int, default=100_000)
options.add_argument("--keep", type=int, default=3)
options.add_argument("--clear-at-least", type=int, default=0)
options.add_argument("--clear-inputs", action="store_true")
options.add_argument("--exclude", default="")
options.add_argument("--placeholder", default="[cleared]")
options.add_argument("--counter", choices=["approximate", "cl100k"], default="approximate")
options.add_argument("--count-system", action="store_true")
options = options.parse_args()


def cl100k(messages):
    """Tokens of texts, names and arguments of calls, and results; nothing for the frame of a message."""
    import json

    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    texts = [message.text for message in messages]
    for call in (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls):
        texts += [call["name"], json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))]
    return sum(len(encoding.encode(text, disallowed_special=())) for text in texts)


middleware = ContextEditingMiddleware(
    edits=[ClearToolUsesEdit(
        trigger=options.trigger, clear_at_least=options.clear_at_least, keep=options.keep,
        clear_tool_inputs=options.clear_inputs, exclude_tools=list(filter(None, options.exclude.split(","))),
        placeholder=options.placeholder)],
    token_counter=cl100k if options.counter == "cl100k" else None,
)
nobody = FakeListChatModel(responses=[""])  # The request wants a model; nothing is asked of it.


@strategy(history="full", shape="openai", name="langchain_edit", kind="clear")
def compact(messages, budget, ask):
    before = convert_to_messages([{**message, "content": message["content"] or ""} for message in messages])
    for place, message in enumerate(before):
        message.id = str(place)
    system = SystemMessage(budget.system) if budget.system else None
    shown = [system, *before] if options.count_system and system else before
    request = ModelRequest(model=nobody, messages=shown, tools=[], state={"messages": shown},
                           system_message=None if options.count_system else system)
    seen = []

    def handler(edited):
        seen.extend(edited.messages)
        return ModelResponse(result=[AIMessage("")])

    middleware.wrap_model_call(request, handler)
    return [messages[int(message.id)] if message == before[int(message.id)] else convert_to_openai_messages(message)
            for message in seen if message.id]
