// The list of all checkpoints: searched, sorted, narrowed by the chips (which fade the map, too),
// and folded: one row for a checkpoint in all steps, or for a point in all steps and layers.
const chips = {
	outside: (c) => c.fails,
	origins: (c) => c.origin,
	layer: (c) => selected !== null && c.layer === selected.layer,
};
const pressed = () => Object.keys(chips).filter((name) => byId(`chip-${name}`).getAttribute("aria-pressed") === "true");

const overFloor = (c) => (c.elements && floorOf(c) > 0 ? c.metrics.nmse / floorOf(c) : NaN);
// What a column holds, by which it sorts, and how it is shown. Numbers sort the largest first.
const columns = [
	["checkpoint", (r) => r.at],
	["status", (r) => (r.c.origin ? 3 : r.c.fails ? 2 : 0)],
	["value ÷ limit", (r) => fractionOf(r.c)],
	["nmse", (r) => (r.c.elements ? r.c.metrics.nmse ?? Infinity : NaN)],
	["nmse ÷ floor", (r) => overFloor(r.c)],
	["own error ÷ its floor", (r) => (r.c.replay ? r.c.replay.local_over_floor ?? Infinity : NaN)],
];
const ROWS = narrow.matches ? 20 : 100;
const list = { by: 0, down: false, rows: ROWS, shown: [], seen: false };

// "q_rope", "layer 7 proj", "step 3", "layer*.q_*"
function searched(query) {
	const exact = { layer: null, step: null };
	const rest = query.toLowerCase().replace(/\b(layer|step) (\d+)/g, (_, what, n) => {
		exact[what] = Number(n);
		return "";
	}).replace(/,/g, " ").trim();
	const words = rest.split(/\s+/).filter((x) => x).map(
		(x) => new RegExp(x.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*")));
	return (c) => (exact.layer === null || c.layer === exact.layer) && (exact.step === null || c.step === exact.step)
		&& words.every((w) => w.test(labelOf(c).toLowerCase()));
}

const range = (what, numbers) => {
	const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
	return low === high ? `${what} ${low}` : `${what}s ${low} ${high === low + 1 ? "and" : "to"} ${high}`;
};

// One row for the checkpoints of a fold: the worst of them, and where they are.
function rowOf(fold) {
	const steps = new Set(fold.all.map((c) => c.step)), layers = new Set(fold.all.map((c) => c.layer));
	const c = fold.all.reduce((a, b) => ((fractionOf(b) || 0) > (fractionOf(a) || 0) ? b : a));
	const where = [...(Math.max(...steps) > 0 ? [range("step", [...steps])] : []),
		...(c.layer >= 0 ? [range("layer", [...layers])] : [])].join(", ");
	const whole = steps.size * layers.size === fold.all.length;
	const words = fold.all.length === 1 ? "" : `${c.point} in ${where}` + (whole ? "" : ` (${fold.all.length})`);
	return { c, words, at: fold.at };
}

function foldRows(cs) {
	const how = byId("fold").value, folds = new Map();
	if (!how)
		return cs.map((c, at) => ({ c, words: "", at }));
	cs.forEach((c, at) => {
		const what = how === "steps" ? c.name : `${c.layer >= 0} ${c.point}`;
		const key = `${c.of} ${c.fails} ${c.status} ${what}`, there = folds.get(key);
		if (there)
			there.all.push(c);
		else
			folds.set(key, { all: [c], at });
	});
	return [...folds.values()].map(rowOf);
}

function sortRows(rows) {
	const value = columns[list.by][1], sign = list.down ? -1 : 1;
	const of = new Map(rows.map((r) => [r, value(r)]));
	return rows.sort((a, b) => {
		const [x, y] = [of.get(a), of.get(b)];
		return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y)
			: x === y ? a.at - b.at : sign * (x < y ? -1 : 1);
	});
}

function listHead([name], i) {
	const arrow = list.by !== i ? "" : list.down ? " ▾" : " ▴";
	const button = make("button", { type: "button", class: "sort" }, name + arrow);
	button.addEventListener("click", () => {
		list.down = list.by === i ? !list.down : i > 0;
		list.by = i;
		drawList();
		byId("found").querySelectorAll("th button")[i].focus();
	});
	const sort = list.by !== i ? undefined : list.down ? "descending" : "ascending";
	return make("th", { scope: "col", "aria-sort": sort }, button);
}

function listRow({ c, words }) {
	const name = (several ? `${sides[c.of].letter} ` : "") + (words || labelOf(c));
	const shown = [goTo(c, name), make("span", { class: c.fails ? "outside" : undefined },
		(c.status === "outside" ? "OUTSIDE" : c.status) + (c.origin ? ", an origin" : "")),
	...columns.slice(2).map(([, value]) => {
		const x = value({ c });
		return Number.isNaN(x) ? "–" : x === Infinity ? "beyond" : short(x);
	})];
	return make("tr", { class: c === selected ? "current" : undefined }, ...shown.map((x, i) => make("td",
		{ class: i > 1 ? "value" : undefined, "data-head": i ? columns[i][0] : "" }, x)));
}

// Fades what the pressed chips exclude, and lists the others.
function drawList() {
	const asked = pressed(), passes = (c) => asked.every((name) => chips[name](c));
	for (const td of byId("map-box").querySelectorAll("td[data-at]"))
		td.classList.toggle("off", asked.length > 0 && !passes(checkpointAt(td.dataset.at.split(" ").map(Number))));
	if (!list.seen)
		return;
	const ofStep = (s) => s.report.checkpoints.filter((c) => stepShown === null || c.step === stepShown);
	const all = sides.flatMap(ofStep), kept = asked.length ? all.filter(passes) : all;
	const labels = new Set(asked.length ? kept.map(labelOf) : []);
	for (const b of byId("strip").querySelectorAll("button"))
		b.classList.toggle("off", asked.length > 0 && !labels.has(b.dataset.label));
	const query = byId("search").value.trim(), found = query ? kept.filter(searched(query)) : kept;
	const rows = sortRows(foldRows(found)), left = rows.length - list.rows;
	const count = `${found.length} checkpoint${found.length === 1 ? "" : "s"}`
		+ (rows.length < found.length ? ` in ${rows.length} rows, each the worst of its own` : "")
		+ (left > 0 ? `; the first ${list.rows} rows` : "");
	const more = left > 0
		? make("button", { type: "button", id: "more" }, `${Math.min(left, 10 * ROWS)} more rows`) : null;
	more?.addEventListener("click", () => {
		list.rows += 10 * ROWS;
		drawList();
	});
	list.shown = rows.slice(0, list.rows);
	byId("found").replaceChildren(make("p", { class: "dim", "aria-live": "polite" }, count),
		make("div", { class: "scroll" }, make("table", { class: "stack list" },
			make("thead", {}, make("tr", {}, ...columns.map(listHead))),
			make("tbody", {}, ...list.shown.map(listRow)))), ...(more ? [more] : []));
}

// After another checkpoint was selected: only the chip of its layer lists others.
function markListed() {
	if (pressed().includes("layer"))
		drawList();
	byId("found").querySelectorAll("tbody tr").forEach((tr, i) => {
		tr.className = list.shown[i].c === selected ? "current" : "";
	});
}

// The list of a very long run is made when somebody comes near it.
function startList() {
	const see = () => {
		list.seen = true;
		drawList();
	};
	list.seen = sides.every((s) => s.report.checkpoints.length < CELLS);
	if (!list.seen)
		new IntersectionObserver((found, observer) => {
			if (found.some((x) => x.isIntersecting)) {
				observer.disconnect();
				see();
			}
		}, { rootMargin: "400px" }).observe(byId("found").closest("section"));
	for (const name of Object.keys(chips))
		byId(`chip-${name}`).addEventListener("click", (event) => {
			const chip = event.currentTarget;
			chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
			see();
		});
	byId("search").addEventListener("input", () => {
		list.rows = ROWS;
		see();
	});
	byId("fold").value = sides.some((s) => s.report.checkpoints.some((c) => c.step > 0)) ? "all" : "";
	byId("fold").addEventListener("change", drawList);
	if (sides.some((s) => s.report.checkpoints.some((c) => c.fails))) { // what is worst comes first
		list.by = 1;
		list.down = true;
	}
}
