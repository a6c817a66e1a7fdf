
"use strict";
(function () {
  // Tables whose headings sort them; controls stay first.
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach(function (head, column) {
      var button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.prototype.slice.call(body.rows);
        var pinned = rows.filter(function (row) { return row.hasAttribute("data-pinned"); });
        var others = rows.filter(function (row) { return !row.hasAttribute("data-pinned"); });
        others.sort(function (one, other) {
          var a = one.cells[column], b = other.cells[column];
          var x = a.getAttribute("data-value"), y = b.getAttribute("data-value");
          if (x === null && y === null) {
            var order = a.textContent.localeCompare(b.textContent);
            return down ? order : -order;
          }
          if (x === null) return 1;
          if (y === null) return -1;
          return down ? Number(y) - Number(x) : Number(x) - Number(y);
        });
        pinned.concat(others).forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // Long tables, page by page; every text is set as text.
  document.querySelectorAll(".paged").forEach(function (part) {
    var packed = JSON.parse(part.querySelector("script").textContent);
    var all = packed.rows.map(function (row) {
      return row.map(function (number) { return packed.texts[number]; });
    });
    var shown = Number(part.getAttribute("data-columns"));
    var folds = Number(part.getAttribute("data-folds"));
    var body = part.querySelector("tbody"), status = part.querySelector("[role=status]");
    var earlier = part.querySelector(".earlier"), later = part.querySelector(".later");
    var selects = Array.prototype.slice.call(part.querySelectorAll("select"));
    var size = 50, from = 0, found = all;
    function column(select) { return Number(select.getAttribute("data-column")); }
    function fill(cell, text, may_fold) {
      var end = text.indexOf("\n");
      if (!may_fold || end < 0 || text.length < 200) {
        cell.textContent = text;
        return;
      }
      var folded = document.createElement("details");
      var head = document.createElement("summary");
      head.textContent = text.slice(0, end);
      folded.appendChild(head);
      folded.appendChild(document.createTextNode(text.slice(end + 1)));
      cell.appendChild(folded);
    }
    function option(select, text, value) {
      var made = document.createElement("option");
      made.textContent = text;
      made.value = value;
      select.appendChild(made);
    }
    selects.forEach(function (select) {
      var seen = new Set();
      option(select, "all", "");
      all.forEach(function (row) {
        var text = row[column(select)];
        if (!seen.has(text)) {
          seen.add(text);
          option(select, text, text);
        }
      });
      select.addEventListener("change", function () {
        from = 0;
        choose();
      });
    });
    function choose() {
      found = all.filter(function (row) {
        return selects.every(function (select) {
          return select.value === "" || row[column(select)] === select.value;
        });
      });
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
  });
}());
