// One checkpoint in full, all runs side by side, and the page's beginning.
let selected = null;

function ruleOf({ file, line, why }) {
	return make("span", {}, make("code", {}, file.split("/").pop() + (line === null ? "" : `:${line}`)),
		why ? make("span", { class: "dim" }, ` ${why}`) : "");
}

function limitsTable(c) {
	return table(["metric", "value", "limit", "value ÷ limit", "rule"], c.limits.map((l) => ({
		class: l.holds ? undefined : "broken",
		cells: [
			l.metric + (l.steps ? ` over ${l.steps} steps` : ""),
			l.value === null ? l.note ?? l.value_is : l.value,
			l.limit,
			l.limit_fraction === null ? "above it" : Number(l.limit_fraction.toPrecision(3)),
			l.rule ? ruleOf(l.rule) : "built in",
		],
	})), { class: "stack" });
}

// Most checkpoints of a long run have only the limit that is used most.
function briefTable(c) {
	const shares = c.limits.map((l) => ({
		cells: [l.metric, l.limit_fraction === null ? "above it" : Number(l.limit_fraction.toPrecision(3))],
	}));
	return make("div", {}, table(["metric", "value ÷ limit"], shares),
		make("p", { class: "dim" }, `nmse ${short(c.metrics.nmse)}, floor ${short(c.floor?.nmse)}. In a run this long, `
			+ "the page is brief about most checkpoints; --format json has every field."));
}

function metricsTable(c) {
	const none = c.metrics_not_finite ?? {}, floorless = c.floor_not_finite ?? {};
	return table(["metric", "value", "floor"], Object.keys(c.metrics).map((key) => ({
		cells: [key, c.metrics[key] ?? none[key] ?? "–", c.floor ? c.floor[key] ?? floorless[key] ?? "–" : "–"],
	})));
}

// The same checkpoint of every candidate, a row each.
function besideTable() {
	const rows = sides.map((s) => [s, s.find(labelOf(selected))]);
	const head = ["candidate", "status", "nmse", "nmse ÷ floor", "cosine", "max abs", "most used of its limits"];
	const cells = (s, c) => [
		goTo(c, s.letter),
		make("span", { class: c.fails ? "outside" : "within" }, c.status + (c.origin ? ", origin" : "")),
		c.metrics.nmse ?? "–",
		c.floor?.nmse > 0 ? Number((c.metrics.nmse / c.floor.nmse).toPrecision(3)) : "–",
		c.metrics.cosine ?? "–",
		c.metrics.max_abs ?? "–",
		Number.isNaN(fractionOf(c)) ? "–" : times(fractionOf(c)),
	];
	const values = rows.filter(([s, c]) => c && s.detailOf.has(labelOf(c))).map(([s]) => make("div", {},
		make("h3", {}, `${s.letter}: values`), valuesTable(s.detailOf.get(labelOf(selected)))));
	return make("div", { id: "beside" }, table(head, rows.map(([s, c]) => ({
		class: c === selected ? "current" : undefined,
		cells: c ? cells(s, c) : [s.letter, "has no such checkpoint", "", "", "", "", ""],
	})), { class: "stack" }), make("div", { class: "side" }, ...values));
}

function valuesTable(d) {
	const apart = (a, b) => (typeof a === "number" && typeof b === "number" ? b - a : "–");
	const rows = d.reference.around.map((r, i) => ({
		cells: [`[${d.around.from + i}]`, r, d.candidate.around[i], apart(r, d.candidate.around[i])],
	}));
	return make("div", {}, make("p", { class: "dim" }, `around ${d.around.where}`),
		table(["element", "reference", "candidate", "difference"], rows));
}

function statisticsTable(d) {
	const of = (side, key) => side.statistics[key] ?? side.statistics.not_finite?.[key] ?? "–";
	return table(["of the tensor", "reference", "candidate"], [
		{ cells: ["dtype", d.reference.dtype, d.candidate.dtype] },
		...["min", "max", "mean", "rms", "absmax", "nan", "inf"].map(
			(key) => ({ cells: [key, of(d.reference, key), of(d.candidate, key)] })),
	]);
}

function profile(d) {
	const ratio = (e, r) => (typeof e !== "number" ? Infinity
		: typeof r === "number" && r > 0 ? e / r : e > 0 ? Infinity : 0);
	const relative = (a) => a.error.map((e, i) => ratio(e, a.reference[i]));
	const axes = d.profile.axes.filter((a) => a.size > 1);
	return [
		make("h3", {}, "Where the error is"),
		make("ul", { class: "words" }, ...d.profile.words.map((w) => make("li", {}, w))),
		d.profile.words.length ? null : make("p", { class: "dim" }, "No token, head or channel stands out."),
		make("div", { class: "side" },
			...axes.map((a) => make("div", {}, bars(relative(a), a.indices_per_sum, a.axis)))),
	];
}

// The error that the operation itself added, computed again on the candidate's own inputs.
function replayTable(c) {
	const r = c.replay, none = r.not_finite ?? {}, value = (key) => r[key] ?? none[key] ?? "–";
	const words = [
		r.span > 1
			? `these are the errors of ${r.span} operations together, whose tensors in between were not recorded` : "",
		r.recorder_fault
			? "captured wrongly, or changed after the capture: the operation that reads it used the right numbers" : "",
		r.fault_at ? `not called an origin: the error of ${r.fault_at} may explain all of this error` : "",
	].filter((x) => x);
	return make("div", {}, table(["error", "nmse", "nmse ÷ its floor"], [
		{
			class: r.operation_wrong && !r.fault_at ? "broken" : undefined,
			cells: ["local error", value("local"), value("local_over_floor")],
		},
		{ cells: ["local error, worst token", "", value("worst_token_over_floor")] },
		{ cells: ["local error, worst element", "", value("max_abs_over_floor")] },
		{ cells: ["inherited error", value("inherited"), ""] },
		], { class: "stack" }),
	make("p", {}, `gain: ${short(r.gain)} (inherited error ÷ the error of the inputs)`),
	words.length ? make("p", {}, `${words.join("; ")}.`) : null);
}

// The known mistakes that reproduce the error, and how near the others come.
function explanation(e) {
	const left = (h) => h.residual ?? h.not_finite?.residual;
	const rows = (list, word) => list.map((h) => ({
		class: word ? "answer" : undefined,
		cells: [h.id || "–", h.words + (word && h.at !== e.checkpoint ? `, at ${h.at}` : ""), left(h)],
	}));
	const tried = [...rows(e.answers, true), ...rows(e.others, false)];
	return make("div", {}, make("p", {}, e.words),
		make("ul", { class: "words" }, ...e.details.map((d) => make("li", {}, d))),
		make("details", {}, make("summary", {}, `The best of ${e.tried} known mistakes tried`),
			table(["id", "mistake", "residual ÷ floor"], tried, { class: "stack" })));
}

function inputs(d) {
	if (d.inputs === null)
		return make("p", { class: "dim" }, "No plan was recorded, so the inputs of this checkpoint are unknown.");
	return make("ul", {}, ...d.inputs.map((i) => {
		const c = side.find(i.name);
		return make("li", {}, c ? goTo(c) : i.name, ` ${i.status}, nmse ${short(c?.metrics.nmse)}`);
	}));
}

function withoutDetail(c) {
	if (c.status !== "outside" || !c.fails)
		return null;
	return make("p", { class: "dim" }, `This page has values, statistics and profiles of ${report.divergences.length} `
		+ "checkpoints only: the first divergence, origins, then others in order. "
		+ `For ${report.divergences_left_out} checkpoints, this one among them, it has only the metrics.`);
}

const worstNumber = (side) => number(side.worst ?? side.not_finite?.worst);

function factsList(c, facts) {
	const status = { class: c.fails ? "outside" : "within" };
	return make("dl", { class: "facts" }, ...facts.filter(([, value]) => value).flatMap(([key, value]) => [
		make("dt", {}, key), make("dd", key === "status" ? status : {}, value)]));
}

function drawDetail() {
	const c = selected, d = side.detailOf.get(labelOf(c));
	const e = (report.explanations ?? []).find((x) => x.checkpoint === labelOf(c));
	byId("detail-title").replaceChildren(make("code", {}, labelOf(c)));
	const facts = [["status", describe(c)], ["op", c.op], ["shape", `${c.shape.join(" × ")}  ${c.axes}`]];
	if (c.detail)
		facts.push(["finding", c.detail], ["what it holds", c.contents]);
	if (d)
		facts.push(["worst element", `${d.worst_element.where}: reference ${worstNumber(d.reference)}, `
			+ `candidate ${worstNumber(d.candidate)}`]);
	for (const who of ["candidate", "reference"])
		if (d?.[who].source_line)
			facts.push([`recorded at (${who})`, d[who].source_line]);
	byId("detail-body").replaceChildren(...[
		several ? besideTable() : null,
		several ? make("h3", {}, `Candidate ${sides[c.of].letter}: ${report.candidate.path}`) : null,
		factsList(c, facts),
		c.limits.length ? make("h3", {}, "Limits") : null,
		c.limits.length ? (c.brief ? briefTable(c) : limitsTable(c)) : null,
		c.replay ? make("h3", {}, "Local or inherited error") : null, c.replay ? replayTable(c) : null,
		e ? make("h3", {}, "Which mistake it is") : null, e ? explanation(e) : null,
		...(d ? profile(d) : [withoutDetail(c)]),
		d ? make("h3", {}, "Side by side") : null,
		d ? make("div", { class: "side" }, several ? null : valuesTable(d), statisticsTable(d)) : null,
		d ? make("h3", {}, "Computed from") : null, d ? inputs(d) : null,
		c.elements && !c.brief ? make("details", {}, make("summary", {}, "All metrics"), metricsTable(c)) : null,
	].filter((x) => x !== null));
}

// The address of a checkpoint in this page: #layer0.q_proj, of candidate B #B:layer0.q_proj.
const addressOf = (c) => "#" + encodeURIComponent((several ? `${sides[c.of].letter}:` : "") + labelOf(c))
	.replaceAll("%2F", "/").replaceAll("%3A", ":");

// The checkpoint that the address names; null: none, undefined: the address has none.
function addressed() {
	let label;
	try {
		label = decodeURIComponent(location.hash.slice(1));
	} catch {
		return null;
	}
	if (!label)
		return undefined;
	const of = sides.find((s) => several && label.startsWith(`${s.letter}:`));
	const name = of ? label.slice(of.letter.length + 1) : label;
	return (of ? of.find(name) : sides.map((s) => s.find(name)).find((c) => c)) ?? null;
}

// show: bring the details into view, for a finger or a key that asked for them. visit: how the
// address changes: "pushState" for Back to return here, "replaceState", or null.
function select(c, { show = false, visit = "pushState" } = {}) {
	if (visit && location.hash !== addressOf(c))
		history[visit](null, "", addressOf(c));
	lookAt(c.of);
	if (stepShown !== null && c.step !== stepShown) {
		stepShown = c.step;
		byId("step").value = String(c.step);
		drawMap();
	}
	selected = c;
	markSelected();
	drawDetail();
	drawGraph();
	drawGrowth(c.point);
	markListed();
	if (show) {
		byId("detail-title").focus({ preventScroll: true });
		byId("detail").scrollIntoView({ block: "nearest" });
		const top = byId("detail").getBoundingClientRect().top;
		if (top > innerHeight * 0.6 || top < 0)
			byId("detail").scrollIntoView({ block: "start" });
	}
}

function drawRuns() {
	const runs = [report.reference, ...sides.map((s) => s.report.candidate)];
	const names = ["reference", ...sides.map((s) => (several ? `candidate ${s.letter}` : "candidate"))];
	const facts = [...new Set(runs.flatMap((s) => Object.keys(s.run)))].sort();
	const known = ["created", "tool", "tool_version", "family", "weights", "weights_format", "tokens"];
	const about = known.filter((k) => runs.some((s) => k in s));
	const rows = [
		["file", ...runs.map((s) => s.path)],
		...about.map((k) => [k.replace("_", " "), ...runs.map((s) => String(s[k] ?? "–"))]),
		...facts.map((k) => [k, ...runs.map((s) => s.run[k] ?? "–")]),
	];
	byId("runs").append(
		make("thead", {}, make("tr", {}, ...["", ...names].map((x) => make("th", { scope: "col" }, x)))),
		make("tbody", {}, ...rows.map(([k, ...said]) => make("tr",
			{ class: said.every((x) => x === said[0]) ? undefined : "differs" }, make("th", { scope: "row" }, k),
			...said.map((x, i) => make("td", { "data-head": names[i] }, x))))));
	for (const { letter, report: r } of sides) {
		const note = (text) => make("li", {}, (several ? `${letter}: ` : "") + text);
		const bitwise = r.limits.file === "--bitwise";
		byId("notes").append(note(`limits: ${bitwise ? "none" : r.limits.file} (${r.limits.chosen})`),
			...(bitwise ? [] : [note(`floor: ${r.floor ?? "none"}`)]),
			...r.notes.map((x) => note(`note: ${x}`)), ...r.warnings.map((x) => note(`warning: ${x}`)));
	}
}

// Names in the story become buttons that show their details.
for (const code of several ? [] : document.querySelectorAll("header code.name")) {
	const c = side.find(code.textContent);
	if (c)
		code.replaceChildren(goTo(c));
}
document.querySelector("main").hidden = false;
startList();
startMap();
startGrowth();
drawRuns();
const goBack = () => (markSelected() ?? byId("strip").querySelector("[aria-pressed=true]"))?.focus();
byId("back").addEventListener("click", goBack);
byId("detail").addEventListener("keydown", (event) => {
	if (event.key === "Escape")
		goBack();
});
// Commands of the story are copied by a button.
for (const dd of document.querySelectorAll("header dd.next")) {
	const button = make("button", { type: "button", class: "copy" }, "copy"), code = dd.querySelector("code");
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(code.textContent);
			button.textContent = "copied";
		} catch { // not allowed here: selected, for a key to copy
			getSelection().selectAllChildren(code);
			button.textContent = "selected";
		}
		setTimeout(() => { button.textContent = "copy"; }, 1500);
	});
	dd.append(" ", button);
}

// Where the error starts in the first candidate outside its limits, or else the checkpoint nearest
// to a limit.
function start() {
	const out = sides.find((s) => s.find(s.report.first_divergence));
	return out ? out.find(out.report.first_divergence)
		: sides.flatMap((s) => s.report.checkpoints).reduce(
			(a, b) => ((fractionOf(b) || 0) > (fractionOf(a) || 0) ? b : a));
}
function goToAddress(show) {
	const c = addressed();
	select(c ?? start(), { show: show && Boolean(c), visit: null });
	if (c === null)
		byId("detail-body").prepend(make("p", { class: "outside", role: "alert" },
			`This report has no checkpoint ${printable(location.hash.slice(1))}.`));
}
addEventListener("popstate", () => goToAddress(true));
goToAddress(true);
