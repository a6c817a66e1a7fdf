"""The first message and the newest twenty stay, once the window is four fifths full."""

import pathlib
import sys

# Not needed where the client is installed, or lies beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from proctor_strategy import safe_cut, strategy


@strategy(kind="window")
def compact(messages, budget, ask):
    if budget.used < 0.8 * budget.window and not budget.overflow:
        return messages
    start = max(1, safe_cut(messages, -20))  # Providers refuse a result whose call is gone.
    return messages[:1] + messages[start:]
