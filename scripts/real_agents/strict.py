"""Histories that providers refuse: a call without its result, a result without its call, an empty message."""


def problem(path, body):
    """Why a provider would refuse the request, or nothing."""
    if path.endswith("/messages"):
        return of_messages(body)
    if path.endswith("/chat/completions"):
        return of_chat(body["messages"])
    return of_responses(body["input"]) if "input" in body and not isinstance(body["input"], str) else None


def blocks_of(message):
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def turns(messages):
    """Role and blocks of each turn: neighbours of one role are one turn, and what the system says is none."""
    found = []
    for message in messages:
        if message["role"] == "system":
            continue
        if found and found[-1][0] == message["role"]:
            found[-1][1].extend(blocks_of(message))
        else:
            found.append((message["role"], list(blocks_of(message))))
    return found


def of_messages(body):
    """Anthropic's messages."""
    if not body.get("max_tokens"):
        return "max_tokens is missing"
    places = [*body.get("tools", []), *(body["system"] if isinstance(body.get("system"), list) else [])]
    for message in body["messages"]:
        blocks = blocks_of(message)
        places += [inner for block in blocks for inner in (block, *(block["content"] if isinstance(block.get("content"), list) else []))]
        if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "a message is empty"
    if sum("cache_control" in place for place in places) > 4:
        return "more than 4 blocks have cache_control"
    asked = []
    said = turns(body["messages"])
    if not said or said[0][0] != "user":
        return "the first message is not the user's"
    for role, blocks in said:
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(asked):
            return f"calls {asked} are followed by results of {answered}"
        if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
            return "something is in front of a result"
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if role == "assistant" and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            return "an answer ends with thinking"
    return f"calls {asked} have no results" if asked else None


def of_chat(messages):
    """OpenAI's chat completions."""
    asked = []
    for message in [*messages, {"role": "end", "content": ""}]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in asked:
                return f"a result of `{message['tool_call_id']}`, which was not called or has its result"
            asked.remove(message["tool_call_id"])
            continue
        if asked:
            return f"calls {asked} have no results"
        asked = [call["id"] for call in message.get("tool_calls") or []]
        if message.get("content") is None and not asked:
            return "a message is empty"
    return None


def of_responses(items):
    """OpenAI's responses."""
    called, answered = [], []
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call") and "call_id" in item:
            called.append(item["call_id"])
        elif kind.endswith("_call_output"):
            if item["call_id"] not in called or item["call_id"] in answered:
                return f"a result of `{item['call_id']}`, which was not called or has its result"
            answered.append(item["call_id"])
    open_calls = sorted(set(called) - set(answered))
    if open_calls or len(called) != len(set(called)):
        return f"calls {open_calls} have no results, or one id has two calls"
    return None
