"""Small logs for tests: what was recorded of a short conversation, and the product's own file, with long texts cut."""

import json
import re
import shutil

from .model import SUMMARY

LARGEST = 60_000
STANDARD_SUMMARY = re.compile(re.escape(SUMMARY).replace(r"\{\}", r"\d+"))


def shorten(text, most):
    """The text's beginning and end; a summary of the scripted model in it stays whole."""
    found = STANDARD_SUMMARY.search(text)
    if found:
        before, after = text[: found.start()], text[found.end() :]
        return shorten(before, most) + found.group() + shorten(after, most)
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} [{len(text) - most // 2 * 2} characters] {text[-(most // 2) :]}"


def cut(value, most, key=None):
    if isinstance(value, str):
        return shorten(value, most)
    if isinstance(value, list):
        return [cut_tool(item) if key == "tools" else cut(item, most) for item in value]
    if isinstance(value, dict):
        return {name: cut(item, most, name) for name, item in value.items()}
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


def cut_file(path, most, run):
    """A file of JSON, or of JSON lines, cut; folders of this run get another name."""
    text = path.read_text(encoding="utf-8")
    try:
        values, end = [json.loads(text)], ""
    except ValueError:
        values, end = [json.loads(line) for line in text.splitlines() if line.strip()], "\n"
    lines = [json.dumps(cut(value, most), ensure_ascii=False, separators=(",", ":")) + end for value in values]
    text = "".join(lines)
    # Products also put a folder's path into names, with other separators.
    for name in (str(run), str(run).replace("/", "-")):
        text = text.replace(name, name[0] + name[0].join(("home", "dev")))
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
        for most in (400, 200, 120, 80, 40):
            text = cut_file(source, most, run)
            if len(text.encode()) < LARGEST:
                break
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        kind = target.relative_to(folder).parts[0]
        sizes[kind] = sizes.get(kind, 0) + len(text.encode())
    return sizes
