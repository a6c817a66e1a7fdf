"""The request for a summary is larger than the context, and too long for the model.

earendil-works/pi#8371: Compaction input is unbounded, so a session past the context window can never be compacted
can1357/oh-my-pi#8920: fix(compaction): bound summarization input and stop retrying overflow
Seen: every compaction fails, and the session is stuck.
"""

import json

from policy import Policy, run, text_of, user


class Buggy(Policy):
    share = 0.9

    def request(self, old):
        return [user(json.dumps([old, list(map(text_of, old))], indent=1, ensure_ascii=False))]


run(Buggy())
