"""The shared policy without a bug, with which all other programs are compared."""

from policy import Policy, run

run(Policy())
