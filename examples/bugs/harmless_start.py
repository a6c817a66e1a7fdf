"""The shared policy, slightly earlier: no bug."""

from policy import Policy, run


class Variant(Policy):
    share = 0.79


run(Variant())
