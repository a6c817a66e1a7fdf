
"use strict";
(function () {
  function list(found) { return Array.prototype.slice.call(found); }
  function all(selector, within) { return list((within || document).querySelectorAll(selector)); }
  // An element with a text; no text ever becomes markup.
  function add(parent, name, text) {
    var made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  function option(select, text, value) { add(select, "option", text).value = value; }

  // Data of the page: JSON, deflated, in Base64.
  function unpack(script) {
    var packed = atob(script.textContent), bytes = new Uint8Array(packed.length);
    for (var at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json();
  }

  // Tables whose headings sort them; controls stay first.
  all("table.sortable").forEach(function (table) {
    var body = table.tBodies[0];
    all("thead th", table).forEach(function (head, column) {
      var button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", function () {
        // Names begin with A; of numbers the largest comes first.
        var is_text = list(body.rows).every(function (row) {
          return !row.cells[column].hasAttribute("data-value");
        });
        var sorted = head.getAttribute("aria-sort");
        var down = sorted === null ? !is_text : sorted === "ascending";
        all("thead th", table).forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = list(body.rows);
        var pinned = rows.filter(function (row) { return row.hasAttribute("data-pinned"); });
        var others = rows.filter(function (row) { return !row.hasAttribute("data-pinned") && row.className !== "quoted"; });
        // A quoted control stays behind its strategy.
        var behind = new Map();
        rows.forEach(function (row, at) { if (row.className === "quoted") behind.set(rows[at - 1], row); });
        others.sort(function (one, other) {
          var a = one.cells[column], b = other.cells[column];
          var x = a.getAttribute("data-value"), y = b.getAttribute("data-value");
          if (x === null && y === null) {
            var order = a.textContent.localeCompare(b.textContent);
            return down ? -order : order;
          }
          if (x === null) return 1;
          if (y === null) return -1;
          return down ? Number(y) - Number(x) : Number(x) - Number(y);
        });
        pinned.concat(others).forEach(function (row) {
          body.appendChild(row);
          if (behind.has(row)) body.appendChild(behind.get(row));
        });
      });
    });
  });

  // The columns of the table below a picker.
  all(".picker").forEach(function (picker) {
    var form = picker.querySelector("form"), boxes = all("input", picker);
    var rows = list(picker.parentNode.querySelector("table").rows);
    function choose() {
      boxes.forEach(function (box) {
        rows.forEach(function (row) { row.cells[Number(box.value)].hidden = !box.checked; });
      });
    }
    // A telephone has room for a few columns.
    if (matchMedia("(max-width: 40rem)").matches) {
      all("[data-wide]", picker).forEach(function (box) { box.checked = box.defaultChecked = false; });
      choose();
    }
    form.addEventListener("change", choose);
    form.addEventListener("reset", function () { setTimeout(choose); });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    picker.querySelector(".every").addEventListener("click", function () {
      boxes.forEach(function (box) { box.checked = true; });
      choose();
    });
  });

  // The legend's entries of a picture show and hide its lines.
  all("figure").forEach(function (figure) {
    var buttons = all(".series", figure), groups = all("g[data-series]", figure);
    buttons.forEach(function (button) {
      var sides = button.getAttribute("data-box").split(" ");
      ["left", "top", "width", "height"].forEach(function (side, at) { button.style[side] = sides[at] + "%"; });
      button.hidden = false;
      button.addEventListener("click", function () {
        var name = button.getAttribute("data-series");
        var shown = button.getAttribute("aria-pressed") !== "true";
        function is_same(other) { return other.getAttribute("data-series") === name; }
        buttons.filter(is_same).forEach(function (other) { other.setAttribute("aria-pressed", shown); });
        groups.filter(is_same).forEach(function (group) { group.style.display = shown ? "" : "none"; });
      });
    });
  });

  // Long tables, page by page, and their rows by the table's id.
  var tables = {};
  var unpacked = all(".paged").map(function (part) {
    return unpack(part.querySelector("script")).then(function (packed) { page(part, packed); });
  });
  function page(part, packed) {
    var rows = packed.rows.map(function (row) {
      return row.map(function (number) { return packed.texts[number]; });
    });
    tables[part.id] = rows;
    var shown = Number(part.getAttribute("data-columns"));
    var folds = Number(part.getAttribute("data-folds"));
    var body = part.querySelector("tbody"), status = part.querySelector("[role=status]");
    var earlier = part.querySelector(".earlier"), later = part.querySelector(".later");
    var search = part.querySelector("input"), selects = all("select", part);
    var size = 50, from = 0, found = rows;
    function column(select) { return Number(select.getAttribute("data-column")); }
    function fill(cell, text, may_fold) {
      var end = text.indexOf("\n");
      if (!may_fold || end < 0 || text.length < 200) {
        cell.textContent = text;
        return;
      }
      var folded = add(cell, "details");
      add(folded, "summary", text.slice(0, end));
      folded.appendChild(document.createTextNode(text.slice(end + 1)));
    }
    function choose() {
      var words = search.value.toLowerCase();
      found = rows.filter(function (row) {
        var is_chosen = selects.every(function (select) {
          return select.value === "" || row[column(select)] === select.value;
        });
        return is_chosen && (words === "" || row.slice(0, shown).some(function (text) {
          return text.toLowerCase().indexOf(words) >= 0;
        }));
      });
      from = 0;
      show();
    }
    function show() {
      body.textContent = "";
      found.slice(from, from + size).forEach(function (texts) {
        var row = body.insertRow();
        texts.slice(0, shown).forEach(function (text, at) { fill(row.insertCell(), text, at >= folds); });
      });
      var last = Math.min(from + size, found.length);
      status.textContent =
        found.length === 0 ? "none" : (from + 1) + " to " + last + " of " + found.length;
      earlier.disabled = from === 0;
      later.disabled = last >= found.length;
    }
    selects.forEach(function (select) {
      option(select, "all", "");
      new Set(rows.map(function (row) { return row[column(select)]; })).forEach(function (text) {
        option(select, text, text);
      });
      select.addEventListener("change", choose);
    });
    search.addEventListener("input", choose);
    earlier.addEventListener("click", function () {
      from = Math.max(0, from - size);
      show();
    });
    later.addEventListener("click", function () {
      from += size;
      show();
    });
    part.querySelector("form").addEventListener("submit", function (event) { event.preventDefault(); });
    choose();
  }

  // The prompt of one call of a timeline: its size, what was compacted there, and what that lost.
  function tokens(count) { return count < 1000 ? String(count) : (count / 1000).toFixed(1) + "k"; }
  function quoted(text) {
    return /^[\w@.:-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
  }
  // The entries of the prompt of a call, and by message the compaction that took it out; null where the
  // records do not say.
  function entries_of(calls, cell, call) {
    var before = calls.answered_by[call], entries = [], gone = {}, shortened = {};
    if (before === undefined || calls.messages.length < before) return null;
    function message(at, by) { return { of: calls.messages[at], message: at, is_whole: true, by: by }; }
    function put(piece, by) {
      var made = typeof piece === "number" ? message(piece, by) : { of: piece, message: piece.message, by: by };
      if (made.message !== undefined) delete gone[made.message];
      return made;
    }
    var next = 0;
    function append_to(count) {
      for (; next < count; next += 1) entries.push(shortened[next] || message(next));
    }
    cell.compactions.every(function (compaction) {
      if (compaction.appended > before) return false;
      append_to(compaction.appended);
      if (compaction.on_append) {
        shortened[next] = put(compaction.edits[0].put[0], compaction);
        return true;
      }
      // From the back: places count in the context before the whole compaction.
      compaction.edits.slice().reverse().forEach(function (edit) {
        entries.slice(edit.at, edit.at + edit.taken).forEach(function (entry) {
          if (entry.message !== undefined) gone[entry.message] = compaction;
        });
      });
      compaction.edits.slice().reverse().forEach(function (edit) {
        var made = edit.put.map(function (piece) { return put(piece, compaction); });
        Array.prototype.splice.apply(entries, [edit.at, edit.taken].concat(made));
      });
      return true;
    });
    append_to(before);
    return { entries: entries, gone: gone };
  }
  var KINDS = { user: "user", agent: "agent", results: "tool results", summary: "summary", restored: "put back", authored: "by the strategy" };
  // The table of a prompt, entry by entry, with what is gone in its place.
  function show_entries(out, found, cell, call) {
    var entries = found.entries, gone = Object.keys(found.gone).map(Number).sort(function (a, b) { return a - b; });
    var title = entries.length + (entries.length === 1 ? " entry" : " entries") +
      (gone.length ? ", " + gone.length + " recorded messages gone" : "");
    add(out, "h4", title);
    var scroll = add(out, "div"), table = add(scroll, "table");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Entries of the prompt of " + cell.strategy + " at call " + call);
    var head = table.createTHead().insertRow(), body = table.createTBody();
    ["Entry", "Tokens", "Fate", "Begins"].forEach(function (name) { add(head, "th", name).scope = "col"; });
    function row(texts) {
      var made = body.insertRow();
      texts.forEach(function (text) { add(made, "td", text); });
      return made;
    }
    function said(compaction) { return "at call " + compaction.call + ", by " + compaction.stage; }
    function count(number) { return number.toLocaleString("en-US"); }
    // Consecutive messages that one compaction took out, before the first entry of a later message.
    var at = 0;
    function show_gone(until) {
      while (at < gone.length && gone[at] < until) {
        var first = gone[at], by = found.gone[first];
        do at += 1; while (at < gone.length && gone[at] < until && gone[at] === gone[at - 1] + 1 && found.gone[gone[at]] === by);
        var last = gone[at - 1], made = body.insertRow();
        made.className = "gone";
        add(made, "td", (first === last ? "message " + first + " is" : "messages " + first + " to " + last + " are") +
          " gone, " + said(by)).colSpan = 4;
      }
    }
    row(["system prompt and tools", count(cell.fixed), "in every prompt", ""]);
    var sum = cell.fixed;
    entries.forEach(function (entry) {
      if (entry.message !== undefined) show_gone(entry.message);
      sum += entry.of.tokens;
      var name = KINDS[entry.of.kind] + (entry.message === undefined ? "" : ", message " + entry.message);
      var fate = !entry.by ? "as recorded" : entry.is_whole ? "as recorded; moved " + said(entry.by) :
        (entry.of.kind === "restored" ? "put back " : entry.message === undefined ? "written " : "changed ") + said(entry.by);
      row([name, count(entry.of.tokens), fate, entry.of.text]);
    });
    show_gone(Infinity);
    var rest = cell.tokens[call] - sum;
    if (rest !== 0) row(["difference between counted and billed", count(rest), "", ""]);
  }
  function inspect(part, all_calls) {
    var session = part.getAttribute("data-session"), calls = all_calls[session] || { cells: [] }, cells = calls.cells;
    var form = part.querySelector("form"), out = part.querySelector(".prompt"), below = part.querySelector(".entries");
    var select = form.querySelector("select"), input = form.querySelector("input");
    cells.forEach(function (cell, at) { option(select, cell.strategy, at); });
    var full = cells.filter(function (cell) { return cell.is_full; })[0];
    if (full && cells.length > 1) select.value = 1;
    function is_hidden(cell) {
      return all("g[data-series]", part).some(function (line) {
        return line.getAttribute("data-series") === cell.series && line.style.display === "none";
      });
    }
    // The prompt of a call in words.
    function size(cell, call) {
      var cached = cell.cached[call];
      return tokens(cell.tokens[call]) + " tokens" +
        (cached === undefined ? "" : ", " + tokens(cached) + " of them read from the cache");
    }
    var marks = [];
    function own(id, strategy, session_at, strategy_at) {
      return (tables[id] || []).filter(function (row) {
        return row[session_at] === session && row[strategy_at] === strategy;
      });
    }
    function show() {
      var cell = cells[Number(select.value)], call = Number(input.value);
      out.textContent = below.textContent = "";
      marks.forEach(function (mark) { mark(cell, call); });
      if (!cell || input.value === "") return;
      input.max = cell.tokens.length - 1;
      add(out, "h3", cell.strategy + ", call " + call);
      if (!(call in cell.tokens)) {
        add(out, "p", call === cell.ended_at ? "The session ended there: this prompt was not sent." :
          "There is no such call; the last one is " + input.max + ".");
        return;
      }
      var uncut = full && full !== cell ? full.tokens[call] : undefined;
      add(out, "p", "Prompt of " + size(cell, call) +
        (uncut === undefined ? "" : "; " + tokens(uncut) + " with full history") + ".");
      var changes = own("compacted", cell.strategy, 5, 4), here = changes.filter(function (row) {
        return Number(row[7]) === call;
      });
      here.forEach(function (row) {
        add(out, "pre", row[1]);
        [["Before", row[2]], ["After", row[3]]].forEach(function (side) {
          if (side[1] === "–") return;
          var folded = add(out, "details");
          add(folded, "summary", side[0]);
          add(folded, "pre", side[1]);
        });
      });
      if (!here.length) {
        var before = changes.filter(function (row) { return Number(row[7]) < call; }).pop();
        add(out, "p", before ? "Nothing was compacted at this call; last at call " + before[7] + " by " + before[6] + "." :
          "Nothing was compacted up to this call.");
      }
      var lost = own("items", cell.strategy, 4, 3).filter(function (row) { return row[10] === String(call); });
      var seen = new Set();
      lost = lost.filter(function (row) { return !seen.has(row[0]) && seen.add(row[0]); });
      if (tables.items) add(out, "p", lost.length === 0 ? "No fact was lost at this call." : "Lost at this call:");
      if (lost.length) {
        var items = add(out, "ul");
        lost.forEach(function (row) { add(items, "li", row[0] + " → " + row[1] + " (" + row[9] + ")"); });
      }
      var entries = entries_of(calls, cell, call);
      if (entries) show_entries(below, entries, cell, call);
      add(out, "p", (entries ? "This command prints its entries whole. " : "This command prints its entries. ") +
        "RECORDING is the session's file; proctor sessions generate writes a synthetic one.").className = "quiet";
      add(out, "pre", "proctor inspect RECORDING --id " + quoted(session) + " --strategy " + quoted(cell.strategy) +
        (cell.window === null ? "" : " --window " + quoted(cell.window)) +
        (cell.counter === null ? "" : " --set " + quoted("counter=" + cell.counter)) + " --at " + call);
    }
    select.addEventListener("change", show);
    input.addEventListener("change", show);
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      show();
    });
    all("[data-axis]", part).forEach(function (drawing) {
      var axis = drawing.getAttribute("data-axis").split(" ").map(Number), svg = drawing.querySelector("svg");
      // The call under the pointer, and the cell whose visible line is nearest.
      function nearest(event) {
        var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal, found = null;
        var x = (event.clientX - box.left) * view.width / box.width;
        var y = (event.clientY - box.top) * view.height / box.height;
        if (x < axis[0] - 8 || x > axis[2] + 8 || y < axis[1] || y > axis[3]) return null;
        var call = Math.round(axis[4] + (x - axis[0]) / (axis[2] - axis[0]) * (axis[5] - axis[4]));
        var height = (axis[3] - y) / (axis[3] - axis[1]) * axis[6];
        cells.forEach(function (cell, at) {
          if (!(call in cell.tokens) || is_hidden(cell)) return;
          var far = Math.abs(cell.tokens[call] - height);
          if (found === null || far < found.far) found = { at: at, far: far, call: call };
        });
        return found;
      }
      svg.addEventListener("click", function (event) {
        var found = nearest(event);
        if (found === null) return;
        select.value = found.at;
        input.value = found.call;
        show();
      });
      var tip = add(drawing, "div");
      tip.className = "tip";
      tip.hidden = true;
      // The browser's own tooltip of a line would cover it.
      all("g[data-series] > title", svg).forEach(function (title) { title.remove(); });
      svg.addEventListener("pointermove", function (event) {
        var found = nearest(event), box = svg.getBoundingClientRect();
        tip.hidden = found === null;
        if (found === null) return;
        var cell = cells[found.at], x = event.clientX - box.left;
        tip.textContent = cell.strategy + ", call " + found.call + ": " + size(cell, found.call);
        tip.style.left = x < box.width / 2 ? x + 12 + "px" : "";
        tip.style.right = x < box.width / 2 ? "" : box.width - x + 12 + "px";
        tip.style.top = event.clientY - box.top - 4 + "px";
      });
      svg.addEventListener("pointerleave", function () { tip.hidden = true; });
      // The inspected call: a line through it, and a ring around its prompt.
      function shape(name) {
        var made = document.createElementNS(svg.namespaceURI, name);
        made.setAttribute("class", "mark");
        svg.appendChild(made);
        return made;
      }
      var line = shape("line"), ring = shape("circle");
      marks.push(function (cell, call) {
        var is_shown = cell !== undefined && input.value !== "" && call in cell.tokens;
        line.style.display = ring.style.display = is_shown ? "" : "none";
        if (!is_shown) return;
        var share = axis[5] === axis[4] ? 0 : (call - axis[4]) / (axis[5] - axis[4]);
        var x = axis[0] + share * (axis[2] - axis[0]);
        [["x1", x], ["x2", x], ["y1", axis[1]], ["y2", axis[3]]].forEach(function (end) {
          line.setAttribute(end[0], end[1]);
        });
        ring.setAttribute("cx", x);
        ring.setAttribute("cy", axis[3] - cell.tokens[call] / axis[6] * (axis[3] - axis[1]));
        ring.setAttribute("r", 6);
      });
      marks[marks.length - 1](undefined, 0);
    });
  }
  // What a number of the comparison is made of: its formula, and the values of its sessions.
  function explain(all_numbers) {
    var out = document.getElementById("why"), part = document.getElementById("comparison"), by_metric = {};
    if (!out || !all_numbers) return;
    all_numbers.forEach(function (entry) { by_metric[entry.numbers.metric] = entry; });
    var table = part.querySelector("table.sortable"), heads = all("thead th", table);
    function show(entry, number, label) {
      var numbers = entry.numbers, unit = number.value ? number.value.unit : "count";
      function written(value) {
        if (value === undefined) return "–";
        if (entry.in_percent) return (100 * value).toFixed(1) + " %";
        if (unit === "dollars") return "$" + value.toFixed(4);
        return value.toLocaleString("en-US", { maximumFractionDigits: 4 });
      }
      out.textContent = "";
      add(out, "h3", number.strategy + ", " + label + ": " + number.shown);
      add(out, "p", numbers.doc[0].toUpperCase() + numbers.doc.slice(1) + ".");
      add(out, "p", "Formula: " + numbers.formula + ". Here: " + entry.pooling +
        (number.chance === undefined ? "" : "; f = " + (100 * number.chance).toFixed(1) + " %") + ".");
      numbers.prices.forEach(function (price) { add(out, "p", "Prices: " + price + ".").className = "quiet"; });
      var scroll = add(out, "div"), inner = add(scroll, "table"), has_pairs = number.sessions.some(function (it) { return it.of !== undefined; });
      scroll.className = "scroll";
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", "Values of the sessions");
      var head = inner.createTHead().insertRow(), body = inner.createTBody();
      ["Session", "Value"].concat(has_pairs ? [numbers.pooling === "share" ? "Of" : "Full history"] : []).forEach(function (name) {
        add(head, "th", name).scope = "col";
      });
      number.sessions.forEach(function (it) {
        var row = body.insertRow(), name = add(row, "th");
        name.scope = "row";
        var at = timelines.filter(function (line) { return line.getAttribute("data-session") === it.session; })[0];
        if (at) add(name, "a", it.session).href = "#" + at.id;
        else name.textContent = it.session;
        add(row, "td", written(it.value));
        if (has_pairs) add(row, "td", written(it.of));
      });
      add(out, "pre", "proctor inspect RUN --metric " + numbers.metric + " --strategy " + quoted(number.strategy));
    }
    list(table.tBodies[0].rows).forEach(function (row) {
      list(row.cells).forEach(function (cell, column) {
        var entry = by_metric[heads[column].getAttribute("data-metric")];
        var number = entry && entry.numbers.strategies.filter(function (it) {
          return it.strategy === row.getAttribute("data-row");
        })[0];
        if (!number || cell.tagName === "TH") return;
        var button = document.createElement("button");
        button.type = "button";
        button.title = cell.title || "what it is made of";
        cell.removeAttribute("title");
        while (cell.firstChild) button.appendChild(cell.firstChild);
        cell.appendChild(button);
        button.addEventListener("click", function () {
          show(entry, number, heads[column].querySelector("button").textContent);
        });
      });
    });
  }
  // Parts are folded, but for some on a wide page and the one that a link leads to.
  if (!matchMedia("(max-width: 40rem)").matches) {
    all("details[data-open]").forEach(function (part) { part.open = true; });
  }
  function unfold() {
    var at = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!at) return;
    for (var part = at; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    at.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();
  // A page that is served is made again with the session that is asked for.
  var other = document.getElementById("other");
  if (other && /^https?:$/.test(location.protocol)) {
    other.hidden = false;
    other.addEventListener("submit", function (event) {
      event.preventDefault();
      location.search = "?" + new URLSearchParams({ session: other.elements.session.value });
      location.hash = "#timelines";
    });
  }
  var timelines = all(".timeline");
  Promise.all(unpacked).then(function () {
    var numbers = document.getElementById("numbers");
    return numbers && unpack(numbers).then(explain);
  }).then(function () {
    if (timelines.length) return unpack(document.getElementById("calls"));
  }).then(function (calls) {
    timelines.forEach(function (part) { inspect(part, calls); });
    document.documentElement.setAttribute("data-ready", "");
  });
}());
