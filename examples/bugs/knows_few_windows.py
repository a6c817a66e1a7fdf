"""A window that is missing from the table of models has no limit, so nothing is ever compacted.

CommandCodeAI/command-code#756: Auto-compaction never triggers for models with no declared context window
Seen: the context grows until the provider refuses it.
"""

from policy import Policy, run


KNOWN = (128_000, 200_000, 1_000_000)


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        return super().before_call(messages, budget, ask) if budget.window in KNOWN else messages


run(Buggy())
