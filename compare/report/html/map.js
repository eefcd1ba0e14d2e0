// The map: points down and layers across, the other way round where the page is narrow. A cell
// is a checkpoint; arrow keys move among cells (one of them is in the tab order), and what lies
// outside layers is a row of buttons below.
const narrow = matchMedia("(max-width: 40rem)");
const CELLS = 20000; // a grid of more is no map: everything becomes a button then

// The checkpoint of the requested step, else of the step farthest outside.
let stepShown = null;

function worstOf(steps) {
	let worst = null, most = 0;
	for (const c of steps.values()) {
		const used = fractionOf(c) || 0;
		if (!worst || c.fails > worst.fails || (c.fails === worst.fails && used > most)) {
			worst = c;
			most = used;
		}
	}
	return worst;
}

function shown(side) {
	const all = [...side.named.values()];
	return all.map((steps) => (stepShown === null ? worstOf(steps) : steps.get(stepShown))).filter((c) => c);
}

// The layer and the point of a checkpoint, null outside layers. Of a model that vernier has no plan
// of, layers are what is numbered most often: "model.layers.3.mlp.gate".
function placer(all) {
	if (all.some((c) => c.layer >= 0))
		return (c) => (c.layer >= 0 ? { layer: c.layer, point: c.point } : null);
	const parts = (c) => /^(.+?)\.(\d+)\.(.+)$/s.exec(c.name), count = new Map();
	for (const m of all.map(parts).filter((x) => x))
		count.set(m[1], (count.get(m[1]) ?? 0) + 1);
	const [stack] = [...count].sort((a, b) => b[1] - a[1])[0] ?? [null];
	return (c) => {
		const m = parts(c);
		return m?.[1] === stack ? { layer: Number(m[2]), point: m[3] } : null;
	};
}

// Where each checkpoint goes: the same place in the map of every candidate.
function placeCheckpoints(all) {
	const placeOf = placer(all.flat()), inside = all.flat().map(placeOf).filter((p) => p);
	const layers = [...new Set(inside.map((p) => p.layer))].sort((a, b) => a - b);
	const points = [...new Set(inside.map((p) => p.point))];
	if (layers.length * points.length > CELLS)
		return { layers: [], points: [], at: all.map(() => new Map()), outside: all.flat() };
	const key = (c) => { const p = placeOf(c); return p && `${p.layer} ${p.point}`; };
	const at = all.map((cs) => new Map(cs.filter(placeOf).map((c) => [key(c), c])));
	const placed = (c, i) => placeOf(c) && at[i].get(key(c)) === c;
	return { layers, points, at, outside: all.flatMap((cs, i) => cs.filter((c) => !placed(c, i))) };
}

// The values of a checkpoint under the pointer, in short lines.
function valuesOf(c) {
	const lines = [(several ? `${sides[c.of].letter}: ` : "") + labelOf(c), c.status + (c.origin ? ", an origin" : "")];
	const used = fractionOf(c), nmse = c.elements ? c.metrics.nmse : null, floor = floorOf(c);
	if (!Number.isNaN(used))
		lines.push(times(used));
	if (nmse !== null)
		lines.push(`nmse ${short(nmse)}` + (floor > 0 ? `, ${short(nmse / floor)} × its floor` : ""));
	if (c.replay)
		lines.push(`its own error ${short(c.replay.local_over_floor ?? null)} × its floor`);
	return lines;
}

// Shows lines beside the pointer; null hides them.
function showTip(event, lines) {
	const tip = byId("tip");
	tip.hidden = !lines;
	if (!lines)
		return;
	tip.replaceChildren(...lines.map((x) => make("div", {}, x)));
	const right = event.clientX + 14 + tip.offsetWidth > innerWidth;
	const left = right ? event.clientX - tip.offsetWidth - 8 : event.clientX + 14;
	tip.style.left = `${Math.max(0, left) + scrollX}px`;
	tip.style.top = `${event.clientY + 14 + scrollY}px`;
}

let cells = []; // [candidate][row][column], null: no checkpoint

function drawOne(of, [rows, columns], upright) {
	const map = maps()[of], mine = cells[of];
	const every = upright ? 1 : Math.ceil(columns.length / (several ? 10 : 20)); // every n-th layer number fits
	map.className = upright ? "map upright" : "map";
	map.hidden = rows.length === 0;
	const head = (k, i) => make("th", { scope: "col", colspan: Math.min(every, columns.length - i) },
		make("span", {}, String(k)));
	const cell = (c, y, x) => (!c ? make("td", { class: "gap" })
		: make("td", { role: "gridcell", tabindex: -1, "data-at": `${of} ${y} ${x}`, class: colourOf(c),
			"aria-label": describe(c), "aria-selected": "false" }, markOf(c)));
	map.replaceChildren(
		make("thead", {}, make("tr", {}, make("td"), ...columns.map((k, i) => (i % every ? null : head(k, i))))),
		make("tbody", {}, ...rows.map((r, y) => make("tr", {}, make("th", { scope: "row" }, String(r)),
			...columns.map((_, x) => cell(mine[y][x], y, x))))));
	const longest = Math.max(...(upright ? [] : rows).map((p) => p.length), 4);
	const names = upright ? 2.4 : Math.min(16, 0.48 * longest + 1);
	map.style.setProperty("--names", `${names}rem`);
	document.querySelector("main").style.setProperty("--map",
		`calc(${names}rem + ${columns.length * 32}px)`);
	map.style.width = `min(100%, ${names}rem + ${columns.length * (upright ? 28 : 32)}px)`;
	map.style.minWidth = `calc(${names}rem + ${columns.length * (upright ? 12 : 7)}px)`;
	map.rows[0].cells[0].style.width = `${names}rem`;
}

// A button for each name outside the map, with a mark for each candidate that has it.
function drawStrip(outside) {
	const named = new Map();
	for (const c of outside)
		named.set(labelOf(c), [...(named.get(labelOf(c)) ?? []), c]);
	byId("strip").replaceChildren(...[...named].map(([label, cs]) => {
		const mine = () => cs.find((c) => sides[c.of] === side) ?? cs[0];
		const said = cs.map(describe).join("; ");
		const mark = (c) => markOf(c) || (several ? sides[c.of].letter : "");
		const button = make("button",
			{ type: "button", "aria-label": said, "aria-pressed": "false", "data-label": label },
			...cs.map((c) => make("i", { class: colourOf(c) }, mark(c))), label);
		button.addEventListener("click", () => select(mine(), { show: true }));
		button.addEventListener("mousemove", (event) => showTip(event, valuesOf(mine())));
		button.addEventListener("mouseleave", (event) => showTip(event, null));
		button.addEventListener("focus", () => { byId("pointed").textContent = said; });
		return button;
	}));
}

function drawMap() {
	const { layers, points, at, outside } = placeCheckpoints(sides.map(shown));
	const upright = narrow.matches, shape = upright ? [layers, points] : [points, layers];
	const cell = (mine, r, k) => mine.get(upright ? `${r} ${k}` : `${k} ${r}`) ?? null;
	cells = at.map((mine) => shape[0].map((r) => shape[1].map((k) => cell(mine, r, k))));
	sides.forEach((_, of) => drawOne(of, shape, upright));
	drawStrip(outside);
	markSelected();
	drawList();
}

const cellAt = (of, y, x) => maps()[of].querySelector(`[data-at="${of} ${y} ${x}"]`);

// Marks the selected checkpoint in the map of every candidate. Tab reaches the selected candidate's
// cell, else the first cell.
function markSelected() {
	for (const td of byId("map-box").querySelectorAll("[aria-selected=true], [tabindex='0']"))
		fill(td, { "aria-selected": "false", tabindex: -1 }, []);
	let there = null;
	cells.forEach((rows, of) => rows.forEach((row, y) => row.forEach((c, x) => {
		if (c && selected && c.name === selected.name && c.step === selected.step) {
			cellAt(of, y, x).setAttribute("aria-selected", "true");
			there = c === selected ? cellAt(of, y, x) : there;
		}
	})));
	(there ?? byId("map-box").querySelector("td[data-at]"))?.setAttribute("tabindex", 0);
	for (const b of byId("strip").querySelectorAll("button"))
		b.setAttribute("aria-pressed", String(selected !== null && b.dataset.label === labelOf(selected)));
	maps().forEach((map, of) => map.closest("figure").classList.toggle("current",
		several && selected !== null && of === selected.of));
	return there;
}

const targetOf = (event) => {
	const td = event.target.closest?.("td[data-at]");
	return td ? td.dataset.at.split(" ").map(Number) : null;
};
const checkpointAt = ([of, y, x]) => cells[of][y][x];

// From a cell in a direction, over gaps, to the next that is there.
function beside([of, y, x], [dy, dx]) {
	for (y += dy, x += dx; cells[of][y] !== undefined && x >= 0 && x < cells[of][y].length; y += dy, x += dx)
		if (cells[of][y][x])
			return [of, y, x];
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
	const [of, y] = at, row = cells[of][y];
	let to = null;
	if (moves[event.key])
		to = beside(at, moves[event.key]);
	else if (event.key === "Home")
		to = [of, y, firstOf(row, 0, 1)];
	else if (event.key === "End")
		to = [of, y, firstOf(row, row.length - 1, -1)];
	else if (event.key === "Enter" || event.key === " ")
		select(checkpointAt(at), { show: true });
	else
		return;
	event.preventDefault();
	if (to) {
		select(checkpointAt(to));
		cellAt(...to).focus();
	}
}

// Adds a map for each further candidate; the page has the first one's.
function addMaps() {
	const first = byId("map").closest("figure");
	for (let of = 1; of < sides.length; of++)
		byId("map-box").append(make("figure", {}, make("figcaption"),
			make("table", { id: `map-${of}`, class: "map", role: "grid" })));
	byId("map-box").classList.toggle("several", several);
	document.querySelector("main").classList.toggle("several", several);
	maps().forEach((map, of) => {
		const r = sides[of].report;
		const verdict = make("span", { class: r.verdict === "outside" ? "outside" : "within" },
			` ${r.verdict === "outside" ? "OUTSIDE" : r.verdict}, ${r.summary}`);
		map.closest("figure").querySelector("figcaption").replaceChildren(
			...(several ? [make("b", {}, sides[of].letter), " ", make("code", {}, r.candidate.path), verdict] : []));
		if (several)
			map.setAttribute("aria-label", `candidate ${sides[of].letter}: ${r.candidate.path}`);
	});
	first.hidden = false;
}
const maps = () => [...byId("map-box").querySelectorAll("table")];

function startMap() {
	const steps = [...new Set(sides.flatMap((s) => s.report.checkpoints.map((c) => c.step)))].sort((a, b) => a - b);
	const choose = byId("step");
	if (steps.length > 1) {
		byId("step-label").hidden = false;
		choose.append(make("option", { value: "" }, "the worst of each"),
			...steps.map((s) => make("option", { value: s }, String(s))));
		choose.addEventListener("change", () => {
			stepShown = choose.value === "" ? null : Number(choose.value);
			drawMap();
		});
	}
	const seen = new Set(sides.flatMap((s) => s.report.checkpoints.map(colourOf)));
	const named = (name, text) => make("li", {}, make("i", { class: name }), text);
	const rare = [["agreed", "agreed, no numbers"], ["none", "no limit"], ["absent", "in one recording"],
		["lost", "not comparable"]];
	byId("legend").append(make("li", {}, "value / limit, up to"),
		...bins.map(([, name, text]) => named(name, text)),
		...rare.filter(([name]) => seen.has(name)).map(([name, text]) => named(name, text)),
		make("li", {}, "• outside"), make("li", {}, "◆ origin: its own operation is at fault"),
		make("li", {}, make("i", { class: "frame" }), "selected"),
		...(sides.some((s) => s.report.baseline) ? [make("li", {}, "○ known from the baseline")] : []));
	addMaps();
	const map = byId("map-box");
	map.addEventListener("keydown", keys);
	map.addEventListener("click", (event) => {
		const at = targetOf(event);
		if (at)
			select(checkpointAt(at), { show: narrow.matches });
	});
	map.addEventListener("focusin", (event) => {
		const at = targetOf(event);
		if (at)
			byId("pointed").textContent = describe(checkpointAt(at));
	});
	map.addEventListener("mousemove", (event) => {
		const at = targetOf(event);
		showTip(event, at && valuesOf(checkpointAt(at)));
	});
	map.addEventListener("mouseleave", (event) => showTip(event, null));
	narrow.addEventListener("change", drawMap);
	drawMap();
}
