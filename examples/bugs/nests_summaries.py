"""Each summary contains the one before it word for word.

ultraworkers/claw-code#3050: Critical compaction bug
adolfousier/opencrabs#1649: Compaction continuation document is cumulative: summaries re-derive the whole session and nest (x8.6 growth over 5 compactions)
Seen: the summary grows with each compaction, until it fills the window.
"""

from policy import Policy, is_summary, run, text_of


class Buggy(Policy):
    def summary(self, old, budget, ask):
        before = [text_of(message) for message in old if is_summary(message)]
        nested = ["\nPreviously summarised:\n" + text.replace("\n", "\n  ") for text in before]
        return super().summary(old, budget, ask) + "\n".join(nested)


run(Buggy())
