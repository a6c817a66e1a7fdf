"""Small logs for tests: what was recorded of a short conversation, and the product's own file, with long texts cut."""

import hashlib
import json
import re
import shutil

from .measure import FILE, PROMPT
from .model import SUMMARY

# Longer texts that the script did not write are left out: only that they are the same matters.
LONGEST = 60
OURS = re.compile("|".join(re.escape(mark).replace(r"\{\}", r"\d+") for mark in (FILE, PROMPT)))
OUR_SUMMARY = re.compile(re.escape(SUMMARY).replace(r"\{\}", r"\d+"))


def shorten(text):
    """What the script wrote of a text, and in place of the rest its length and hash."""
    if len(text) <= LONGEST:
        return text
    kept, end = [], 0
    for found in sorted([*OURS.finditer(text), *OUR_SUMMARY.finditer(text)], key=lambda it: it.start()):
        kept += [left_out(text[end : found.start()]), found.group()]
        end = found.end()
    return "".join([*kept, left_out(text[end:])])


def left_out(text):
    return f"[{len(text)} {hashlib.sha256(text.encode()).hexdigest()[:6]}]" if len(text) > 12 else text


def cut(value, key=None):
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, list):
        # Whether an agent has tools matters, and whether they are the same as before.
        return [cut_tool(item) for item in value[:1]] if key == "tools" else [cut(item) for item in value]
    if isinstance(value, dict):
        return {name: cut(item, name) for name, item in value.items()}
    return value


def cut_tool(tool):
    """A tool without its description and the schema of its arguments."""
    if not isinstance(tool, dict):
        return tool
    bare = {"type": "object", "properties": {}}
    kept = {key: value for key, value in tool.items() if key in ("type", "name", "cache_control")}
    if "function" in tool:
        kept["function"] = {"name": tool["function"]["name"], "parameters": bare}
    elif "input_schema" in tool:
        kept["input_schema"] = bare
    elif "parameters" in tool:
        kept["parameters"] = bare
    return kept


def cut_file(path, run):
    """A file of JSON, or of JSON lines, cut; folders of this run get another name."""
    text = path.read_text(encoding="utf-8")
    try:
        values, end = [json.loads(text)], ""
    except ValueError:
        values, end = [json.loads(line) for line in text.splitlines() if line.strip()], "\n"
    lines = [json.dumps(cut(value), ensure_ascii=False, separators=(",", ":")) + end for value in values]
    text = "".join(lines)
    # Products also put a folder's path into names, with other separators.
    for between in "/-":
        text = text.replace(str(run)[1:].replace("/", between), f"home{between}dev")
    return text


def write(name, run, own, folder):
    """Writes `NAME.requests.jsonl` and `NAME.own…`; the size of each in bytes."""
    [log] = [path for path in (run / "recorded").glob("*.jsonl") if not path.name.endswith(".session.jsonl")]
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(log, folder / f"{name}.requests.jsonl")]
    if own.is_dir():
        shutil.rmtree(folder / f"{name}.own", ignore_errors=True)
        inner = sorted(path for path in own.rglob("*.json*") if path.is_file())
        parts += [(path, folder / f"{name}.own" / path.relative_to(own)) for path in inner]
    else:
        parts.append((own, folder / f"{name}.own{own.suffix}"))
    sizes = {}
    for source, target in parts:
        text = cut_file(source, run)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        kind = target.relative_to(folder).parts[0]
        sizes[kind] = sizes.get(kind, 0) + len(text.encode())
    return sizes
