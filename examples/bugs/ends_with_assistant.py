"""A confirmation in the model's voice is added, so the prompt ends with the assistant.

aaif-goose/goose#12164: Requests ending with an assistant message get 400 on no-prefill providers (Databricks); trailing-assistant states reachable from agent loop
hua-bang/pulse-agent#346: fix(engine): ensure compact output ends with user message
Seen: `This model does not support assistant message prefill`, right after a compaction.
"""

from policy import Policy, run


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        confirmed = {"role": "assistant", "content": [{"type": "text", "text": "I have read the summary and go on."}]}
        return super().joined(summary, kept, tail) + [confirmed]


run(Buggy())
