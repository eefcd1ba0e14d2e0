// The map: points down and layers across, the other way round where the page is narrow. A cell
// is a checkpoint; arrow keys move among cells (one of them is in the tab order), and what lies
// outside layers is a row of buttons below.
const narrow = matchMedia("(max-width: 40rem)");
const CELLS = 20000; // a grid of more is no map: everything becomes a button then

// Of several steps the one farthest out, unless one is asked for.
let stepShown = null;

function shown() {
	const cells = new Map();
	for (const c of report.checkpoints) {
		if (stepShown !== null && c.step !== stepShown)
			continue;
		const before = cells.get(c.name);
		const worse = before && (c.fails - before.fails || (usedOf(c) || 0) - (usedOf(before) || 0)) > 0;
		if (!before || worse)
			cells.set(c.name, c);
	}
	return [...cells.values()];
}

function place(checkpoints) {
	const inside = checkpoints.filter((c) => c.layer >= 0);
	const layers = [...new Set(inside.map((c) => c.layer))].sort((a, b) => a - b);
	const points = [...new Set(inside.map((c) => c.point))];
	if (layers.length * points.length > CELLS)
		return { layers: [], points: [], at: new Map(), outside: checkpoints };
	const at = new Map(inside.map((c) => [`${c.layer} ${c.point}`, c]));
	return { layers, points, at, outside: checkpoints.filter((c) => c.layer < 0 || at.get(`${c.layer} ${c.point}`) !== c) };
}

let cells = []; // [row][column], null where there is none

function drawMap() {
	const { layers, points, at, outside } = place(shown());
	const upright = narrow.matches;
	const [rows, columns] = upright ? [layers, points] : [points, layers];
	const every = upright ? 1 : Math.ceil(columns.length / 20); // numbers of layers that have room
	const map = byId("map");
	map.className = upright ? "upright" : "";
	map.hidden = rows.length === 0;
	cells = rows.map((r) => columns.map((k) => at.get(upright ? `${r} ${k}` : `${k} ${r}`) ?? null));
	map.replaceChildren(
		make("thead", {}, make("tr", {}, make("td"), ...columns.map((k, i) => i % every ? null
			: make("th", { scope: "col", colspan: Math.min(every, columns.length - i) }, make("span", {}, String(k)))))),
		make("tbody", {}, ...rows.map((r, y) => make("tr", {}, make("th", { scope: "row" }, String(r)),
			...columns.map((_, x) => cells[y][x]
				? make("td", { role: "gridcell", tabindex: -1, "data-at": `${y} ${x}`, class: colourOf(cells[y][x]),
					"aria-label": describe(cells[y][x]), "aria-selected": "false" }, markOf(cells[y][x]))
				: make("td", { class: "gap" }))))));
	const names = upright ? 2.4 : Math.min(11, 0.5 * Math.max(...points.map((p) => p.length), 4) + 1);
	map.style.setProperty("--names", `${names}rem`);
	map.style.width = `min(100%, ${names}rem + ${columns.length * (upright ? 28 : 32)}px)`;
	map.style.minWidth = `calc(${names}rem + ${columns.length * (upright ? 12 : 7)}px)`;
	map.rows[0].cells[0].style.width = `${names}rem`;
	byId("strip").replaceChildren(...outside.map((c) => {
		const button = make("button", { type: "button", "aria-label": describe(c), "aria-pressed": "false", "data-label": labelOf(c) },
			make("i", { class: colourOf(c) }, markOf(c)), labelOf(c));
		button.addEventListener("click", () => select(c, { show: true }));
		button.addEventListener("focus", () => { byId("pointed").textContent = describe(c); });
		return button;
	}));
	markSelected();
}

const cellAt = (y, x) => byId("map").querySelector(`[data-at="${y} ${x}"]`);

// The selected cell, else the first one, is the one that Tab reaches.
function markSelected() {
	for (const td of byId("map").querySelectorAll("[aria-selected=true], [tabindex='0']"))
		fill(td, { "aria-selected": "false", tabindex: -1 }, []);
	let there = null;
	cells.forEach((row, y) => row.forEach((c, x) => {
		if (c && c === selected)
			there = cellAt(y, x);
	}));
	if (there)
		there.setAttribute("aria-selected", "true");
	(there ?? byId("map").querySelector("td[data-at]"))?.setAttribute("tabindex", 0);
	for (const b of byId("strip").querySelectorAll("button"))
		b.setAttribute("aria-pressed", String(selected !== null && b.dataset.label === labelOf(selected)));
	return there;
}

const targetOf = (event) => {
	const td = event.target.closest?.("td[data-at]");
	return td ? td.dataset.at.split(" ").map(Number) : null;
};

// From a cell in a direction, over gaps, to the next that is there.
function beside([y, x], [dy, dx]) {
	for (y += dy, x += dx; cells[y] !== undefined && x >= 0 && x < cells[y].length; y += dy, x += dx)
		if (cells[y][x])
			return [y, x];
	return null;
}

function firstOf(row, from, step) {
	for (let x = from; row && x >= 0 && x < row.length; x += step)
		if (row[x])
			return x;
	return null;
}

function keys(event) {
	const at = targetOf(event);
	const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
	if (!at || event.ctrlKey || event.altKey || event.metaKey)
		return;
	let to = null;
	if (moves[event.key])
		to = beside(at, moves[event.key]);
	else if (event.key === "Home")
		to = [at[0], firstOf(cells[at[0]], 0, 1)];
	else if (event.key === "End")
		to = [at[0], firstOf(cells[at[0]], cells[at[0]].length - 1, -1)];
	else if (event.key === "Enter" || event.key === " ")
		select(cells[at[0]][at[1]], { show: true });
	else
		return;
	event.preventDefault();
	if (to) {
		select(cells[to[0]][to[1]]);
		cellAt(...to).focus();
	}
}

function startMap() {
	const steps = [...new Set(report.checkpoints.map((c) => c.step))].sort((a, b) => a - b);
	const choose = byId("step");
	if (steps.length > 1) {
		byId("step-label").hidden = false;
		choose.append(make("option", { value: "" }, "the worst of each"), ...steps.map((s) => make("option", { value: s }, String(s))));
		choose.addEventListener("change", () => {
			stepShown = choose.value === "" ? null : Number(choose.value);
			drawMap();
		});
	}
	byId("legend").append(make("li", {}, "value / limit, up to"), ...bins.map(([, name, text]) => make("li", {}, make("i", { class: name }), text)),
		make("li", {}, make("i", { class: "none" }), "no limit"), make("li", {}, make("i", { class: "lost" }), "not comparable"),
		make("li", {}, "• outside"), make("li", {}, "◆ origin"),
		...(report.baseline ? [make("li", {}, "○ known from the baseline")] : []));
	const map = byId("map");
	map.addEventListener("keydown", keys);
	map.addEventListener("click", (event) => {
		const at = targetOf(event);
		if (at)
			select(cells[at[0]][at[1]], { show: narrow.matches });
	});
	map.addEventListener("focusin", (event) => {
		const at = targetOf(event);
		if (at)
			byId("pointed").textContent = describe(cells[at[0]][at[1]]);
	});
	map.addEventListener("mouseover", (event) => {
		const at = targetOf(event);
		if (at)
			byId("pointed").textContent = describe(cells[at[0]][at[1]]);
	});
	narrow.addEventListener("change", drawMap);
	drawMap();
}
