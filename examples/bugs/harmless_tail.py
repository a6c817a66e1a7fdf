"""The shared policy with a slightly shorter tail: no bug."""

from policy import Policy, run


class Variant(Policy):
    tail = 0.24


run(Variant())
