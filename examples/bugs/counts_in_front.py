"""A status line in the first message changes at every call.

microsoft/vscode-copilot-chat#4913: Revert: Remove transcript line count from compaction summary
jin-bo/agentao#288: feat(llm): stage 0 of the multi-wire-API plan — a stable prompt prefix, and opt-in cache breakpoints
Seen: nothing is read from the prompt cache, and the bill is several times as high.
"""

from policy import Policy, run, text_of, user


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        result = super().before_call(messages, budget, ask)
        first = text_of(result[0]).split("\n[state]")[0]
        return [user(f"{first}\n[state] call {budget.call}, {budget.used} tokens used")] + result[1:]


run(Buggy())
