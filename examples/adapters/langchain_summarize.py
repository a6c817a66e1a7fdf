"""LangChain's `SummarizationMiddleware` as a strategy.

Library   langchain 1.4.7, `langchain.agents.middleware.SummarizationMiddleware`
Run       proctor run sessions/ --strategy-cmd 'python3 langchain_summarize.py --trigger tokens:100000 --keep messages:20'

--trigger      `tokens:N`, `messages:N` or `fraction:F`; more than once: any of them (fraction:0.8)
--keep         the same, for what stays at the end (messages:20)
--trim         tokens of history that go to the model, or `none` for all (4000)
--max-tokens   the longest summary that is asked for (2000)
--model        the model that is asked (the agent's)

What is called is `before_model`; the summary is asked of Proctor. `fraction` is of the window that can be used. The
middleware replaces the agent's state, so each call builds on the last. The trigger counts messages without the system
prompt. Lost on the way: thinking blocks; the usage that a provider reports is not there, so only the middleware's own
estimate triggers. A failing model is tried three times, as the middleware does, but without its pauses; then nothing is
changed, where LangChain would end the run. A prompt that is too long for the model is shortened by the middleware and
asked once more. A refused prompt is summarised whatever `--trigger` says; the middleware itself does nothing there.
"""

import argparse

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage, RemoveMessage, convert_to_messages, convert_to_openai_messages)
from langchain_core.outputs import ChatGeneration, ChatResult

from proctor_strategy import AskFailed, strategy

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--trigger", action="append")
options.add_argument("--keep", default="messages:20")
options.add_argument("--trim", default="4000")
options.add_argument("--max-tokens", type=int, default=2000)
options.add_argument("--model")
options = options.parse_args()


class Proctor(BaseChatModel):
    """A chat model that is asked through Proctor."""

    ask: object = None

    @property
    def _llm_type(self):
        return "proctor"

    def with_retry(self, **options):
        return super().with_retry(**{**options, "wait_exponential_jitter": False})

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        more = {"model": options.model} if options.model else {}
        try:
            text = self.ask(convert_to_openai_messages(messages), max_tokens=options.max_tokens, **more)
        except AskFailed as error:
            if error.kind == "too_long":
                raise ContextOverflowError(str(error)) from error
            raise
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def size(text):
    kind, _, number = text.partition(":")
    return kind, float(number) if kind == "fraction" else int(number)


@strategy(shape="openai", name="langchain_summarize", kind="summarise")
def compact(messages, budget, ask):
    before = convert_to_messages([{**message, "content": message["content"] or ""} for message in messages])
    for place, message in enumerate(before):
        message.id = str(place)
    middleware = SummarizationMiddleware(
        model=Proctor(ask=ask, profile={"max_input_tokens": budget.effective}),
        trigger=("messages", 1) if budget.overflow else [size(one) for one in options.trigger or ["fraction:0.8"]],
        keep=size(options.keep),
        trim_tokens_to_summarize=None if options.trim == "none" else int(options.trim),
    )
    try:
        update = middleware.before_model({"messages": before}, None)
    except ContextOverflowError as error:
        raise AskFailed("too_long") from error
    if update is None:
        return messages
    return [messages[int(message.id)] if message.id and message.id.isdigit() else convert_to_openai_messages(message)
            for message in update["messages"] if not isinstance(message, RemoveMessage)]
