#!/usr/bin/env bash
# Keep the first message and the last N, once the context is large. Bash and jq (1.6 or later), nothing else.
#
#   proctor run sessions/ --strategy-cmd 'bash keep_last.sh 20 0.8'
#
#   $1  N, the messages that stay at the end (20)
#   $2  from which part of the budget on (0.8)
#
# The tail is made longer where it would begin with a tool result whose call has been dropped.
set -eu

exec jq -c --unbuffered --argjson keep "${1:-20}" --argjson from "${2:-0.8}" '
  # A content is a string or a list of blocks.
  def blocks: .content | if type == "array" then .[] else empty end;
  def calls: [blocks | select(.type == "tool_use") | .id];
  def results: [blocks | select(.type == "tool_result") | .tool_use_id];

  # The first place at or before $at where no result of the tail has its call before the tail.
  # The first message stays anyway, so its calls are never lost.
  def whole($messages; $at):
    if $at <= 1 then 1
    else
      ([$messages[$at:][] | calls[]] + ($messages[0] | calls)) as $kept
      | if [$messages[$at:][] | results[]] - $kept == [] then $at
        else whole($messages; $at - 1) end
    end;

  def compact:
    (.messages | length) as $n
    | if .prompt_tokens - .fixed_tokens < $from * .budget_tokens or $n <= $keep + 1
      then {type: "unchanged"}
      else whole(.messages; $n - $keep) as $at
        | if $at == 1 then {type: "unchanged"}
          else {type: "messages", messages: [[0, 1], [$at, $n]],
                reason: "dropped \($at - 1) of \($n) messages"} end
      end;

  # Each answer repeats the id of its line; a line without one wants no answer.
  select(.id != null) | {id} + (
    if .type == "hello" then
      {type: "hello", protocol: 2, name: "keep_last", kind: "window", moments: ["before_call", "overflow"]}
    elif .type == "before_call" then compact
    elif .type == "overflow" then .budget_tokens = 0 | compact
    else {type: "unchanged"} end
  )
'
