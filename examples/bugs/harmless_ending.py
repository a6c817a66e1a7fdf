"""The shared policy with a line that ends the summary: no bug."""

from policy import Policy, run, text_of, user


class Variant(Policy):
    def joined(self, summary, kept, tail):
        return super().joined(user(text_of(summary) + "\n[end of the summary]"), kept, tail)


run(Variant())
