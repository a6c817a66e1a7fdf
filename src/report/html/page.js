
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

  // Probe items, page by page; every text is set as text.
  var data = document.getElementById("items-data");
  if (!data) return;
  var packed = JSON.parse(data.textContent);
  var all = packed.rows.map(function (row) {
    return row.map(function (number) { return packed.texts[number]; });
  });
  var size = 50, from = 0, found = all;
  var filters = [["by-strategy", 1], ["by-session", 0], ["by-kind", 2], ["by-fate", 9]];
  function option(select, text, value) {
    var made = document.createElement("option");
    made.textContent = text;
    made.value = value;
    select.appendChild(made);
  }
  filters.forEach(function (filter) {
    var select = document.getElementById(filter[0]);
    var seen = new Set();
    option(select, "all", "");
    all.forEach(function (item) {
      if (!seen.has(item[filter[1]])) {
        seen.add(item[filter[1]]);
        option(select, item[filter[1]], item[filter[1]]);
      }
    });
    select.addEventListener("change", function () {
      from = 0;
      choose();
    });
  });
  function choose() {
    found = all.filter(function (item) {
      return filters.every(function (filter) {
        var wanted = document.getElementById(filter[0]).value;
        return wanted === "" || item[filter[1]] === wanted;
      });
    });
    show();
  }
  function show() {
    var body = document.querySelector("#items tbody");
    body.textContent = "";
    found.slice(from, from + size).forEach(function (item) {
      var row = body.insertRow();
      item.slice(0, 9).forEach(function (text) { row.insertCell().textContent = text; });
    });
    var last = Math.min(from + size, found.length);
    document.getElementById("found").textContent =
      found.length === 0 ? "none" : (from + 1) + " to " + last + " of " + found.length;
    document.getElementById("earlier").disabled = from === 0;
    document.getElementById("later").disabled = last >= found.length;
  }
  document.getElementById("earlier").addEventListener("click", function () {
    from = Math.max(0, from - size);
    show();
  });
  document.getElementById("later").addEventListener("click", function () {
    from += size;
    show();
  });
  document.getElementById("filter").addEventListener("submit", function (event) { event.preventDefault(); });
  choose();
}());
