"""The policy that all programs here share: it summarises all but the newest messages at 80 % of the window.

Each bug overrides one step, `good.py` none. The client is that of this repository.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "clients" / "python"))

from proctor_strategy import AskFailed, Strategy, run, safe_cut, text_of  # noqa: E402

__all__ = [
    "PROMPT", "AskFailed", "Policy", "blocks", "is_summary", "is_typed", "run", "safe_cut", "text_of", "user", "weight",
]

HEADING = "[Summary of the conversation so far]\n"
PROMPT = (
    "Summarise this conversation, in its own language, so that the work can go on from the summary alone. Keep every request, "
    "rule, open item, number, name and running task as it was written. Write the summary only."
)
# Providers accept 100 images and 32 MB in one request.
MOST_IMAGES, MOST_BYTES = 80, 20_000_000


def user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def blocks(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_summary(message):
    return message["role"] == "user" and text_of(message).startswith(HEADING)


def is_typed(message):
    """Whether the user typed it: neither a tool result nor a summary."""
    has_results = any(block["type"] == "tool_result" for block in blocks(message))
    return message["role"] == "user" and not has_results and not is_summary(message)


def weight(message):
    """Images and bytes of a message, those in results of tools included."""
    images, size = 0, 0
    for block in blocks(message):
        inner = block.get("content")
        for part in inner if isinstance(inner, list) else [block]:
            source = part.get("source") or {}
            images += part["type"] == "image"
            size += source.get("bytes") or len(source.get("data") or text_of(part))
    return images, size


def without_images(message):
    kept = []
    for block in blocks(message):
        if isinstance(block.get("content"), list):
            block = {**block, "content": [part for part in block["content"] if part["type"] != "image"] or "[image]"}
        kept.append({"type": "text", "text": "[image]"} if block["type"] == "image" else block)
    return {**message, "content": kept}


class Policy(Strategy):
    share = 0.8
    """Share of the window at which it compacts."""
    tail = 0.25
    """Share of the window that the newest messages may keep."""

    def before_call(self, messages, budget, ask):
        if not self.is_due(messages, budget):
            return messages
        cut = self.cut(messages, budget)
        frees = budget.size(messages[:cut]) > 0.2 * self.window(budget) or self.is_heavy(messages)
        return self.compacted(messages[:cut], messages[cut:], budget, ask) if cut and (frees or budget.overflow) else messages

    def overflow(self, messages, budget, ask):
        return self.before_call(messages, budget, ask)

    def window(self, budget):
        """Tokens that fit. A provider that states no window is taken to have a small one."""
        return budget.effective or 32_000

    def is_due(self, messages, budget):
        return budget.overflow or budget.used > self.share * self.window(budget) or self.is_heavy(messages)

    def is_heavy(self, messages):
        images, size = map(sum, zip((0, 0), *map(weight, messages)))
        return images > MOST_IMAGES or size > MOST_BYTES

    def cut(self, messages, budget):
        """Where the newest messages begin: never between a call and its result, and at the newest reply at the latest."""
        at = len(messages)
        tokens, images, size = self.tail * self.window(budget), MOST_IMAGES // 2, MOST_BYTES // 2
        while at and tokens >= 0 and images >= 0 and size >= 0:
            at -= 1
            own_images, own_size = weight(messages[at])
            tokens, images, size = tokens - budget.size(messages[at]), images - own_images, size - own_size
        last = max((place for place, one in enumerate(messages) if one["role"] == "assistant"), default=len(messages))
        return safe_cut(messages, min(at + 1, last))

    def compacted(self, old, tail, budget, ask):
        text = self.summary(old, budget, ask)
        return self.joined(user(HEADING + text), self.kept(old, tail), tail)

    def summary(self, old, budget, ask):
        """The text of the summary. Raises `AskFailed` for any other answer, and the context stays as it is."""
        reply = ask.full(self.request(old) + [user(PROMPT)])
        if reply.stop != "end" or not reply.text.strip() or budget.size(reply.text) >= budget.size(old):
            raise AskFailed(reply.stop)
        return reply.text

    def request(self, old):
        """The messages that the model is asked to summarise."""
        return list(map(without_images, old)) if self.is_heavy(old) else old

    def kept(self, old, tail):
        """The newest request of the user, if no newer one is in the tail."""
        typed = [message for message in old if is_typed(message)]
        return typed[-1:] if not any(map(is_typed, tail)) else []

    def joined(self, summary, kept, tail):
        return [summary] + kept + tail
