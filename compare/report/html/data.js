// The report (vernier help compare.md, vernier-compare/3), and what the rest of the page asks of
// it. Every string in it comes from somebody's file: it becomes text of the page, never markup.
// What is not printable is shown by its code point, as everywhere (utf8.h).
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const escaped = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const printable = (text) => text.replace(hidden, (c) => escaped[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
const clean = (x) => (typeof x === "string" ? printable(x) : Array.isArray(x) ? x.map(clean)
	: isObject(x) ? Object.fromEntries(Object.entries(x).map(([k, v]) => [printable(k), clean(v)])) : x);

const source = document.getElementById("report").textContent;
// A report in printable ASCII needs no cleaning, which would take longer than all else for a large
// report.
const cleaned = /\\(?!u003c|["\\/])|[^\n -~]/.test(source) ? clean : (x) => x;
const given = JSON.parse(source);

const labelOf = (c) => (c.step ? `step.${c.step}/${c.name}` : c.name);

// A checkpoint of which the page has a row: its place, kind, step, order, nmse, floor,
// limit_fraction, which limit has it, layer. There may be a hundred thousand of them.
const ROW = 9;
class Brief {
	constructor(rows, from, kinds) {
		this.rows = rows;
		this.from = from;
		this.kind = kinds[rows[from + 1]];
		this.step = rows[from + 2];
		this.name = this.kind.name ?? (this.kind.names[this.layer] ??= `layer${this.layer}.${this.kind.point}`);
		this.worstFraction = rows[from + 7] < 0 ? NaN : rows[from + 6] ?? Infinity;
	}
	get brief() { return true; }
	get order() { return this.rows[this.from + 3]; }
	get layer() { return this.rows[this.from + 8]; }
	get metrics() { return { nmse: this.rows[this.from + 4] }; }
	get floor() { return this.rows[this.from + 5] === null ? undefined : { nmse: this.rows[this.from + 5] }; }
	get limits() {
		const most = this.rows[this.from + 7];
		return most < 0 ? [] : [{ metric: this.kind.limited[most], limit_fraction: this.rows[this.from + 6] }];
	}
}
for (const key of ["of", "point", "op", "shape", "axes", "elements", "status", "fails", "origin", "since"])
	Object.defineProperty(Brief.prototype, key, { get() { return this.kind[key]; } });

function inFull(c, rules, of) {
	const x = cleaned(c);
	x.of = of;
	for (const l of x.limits)
		l.rule = l.rule === null ? null : rules[l.rule];
	return x;
}

function merged(full, rows, kinds) {
	const all = new Array(full.length + rows.length / ROW);
	for (let from = 0; from < rows.length; from += ROW)
		all[rows[from]] = new Brief(rows, from, kinds);
	for (let i = 0, at = 0; i < full.length; i++, at++) {
		while (all[at])
			at++;
		all[at] = full[i];
	}
	return all;
}

// One candidate: its report, its checkpoints by name, and the details of some.
class Side {
	constructor({ letter, report: { checkpoints, rows, kinds, rules, ...rest } }, of) {
		const kind = kinds.map((k) => Object.assign(cleaned(k), { of, names: [] })), rule = cleaned(rules);
		this.letter = letter;
		this.report = {
			...cleaned(rest), checkpoints: merged(checkpoints.map((c) => inFull(c, rule, of)), rows, kind),
		};
		this.detailOf = new Map(this.report.divergences.map((d) => [d.name, d]));
		this.named = new Map(); // by name, then by step
		for (const c of this.report.checkpoints) {
			const steps = this.named.get(c.name);
			if (steps)
				steps.set(c.step, c);
			else
				this.named.set(c.name, new Map([[c.step, c]]));
		}
	}
	find(label) {
		const [, step, name] = /^(?:step\.(\d+)\/)?(.*)$/s.exec(label ?? "");
		return this.named.get(label)?.get(0) ?? this.named.get(name)?.get(Number(step ?? 0));
	}
}

// Of one candidate, or of the first of several (vernier-compare-many/2) with their letters. A
// checkpoint says which it is of.
const sides = (given.candidates ?? [{ letter: "", report: given }]).map((x, of) => new Side(x, of));
const several = sides.length > 1;
let side, report; // the selected candidate and its report

function lookAt(of) {
	side = sides[of];
	report = side.report;
}
lookAt(0);

// How much of its tightest limit a checkpoint uses: 1 is the limit. NaN: nothing limits it.
function fractionOf(c) {
	if (c.worstFraction === undefined) {
		const used = c.limits.map((l) => l.limit_fraction ?? Infinity);
		c.worstFraction = used.length ? Math.max(...used) : c.fails ? Infinity : NaN;
	}
	return c.worstFraction;
}

// Colours of the map: upper bounds of the share of a limit.
const bins = [
	[1e-3, "m0", "0.001"], [0.01, "m1", "0.01"], [0.1, "m2", "0.1"], [0.5, "m3", "0.5"], [1, "m4", "1"],
	[3, "m5", "3"], [10, "m6", "10"], [100, "m7", "100"], [Infinity, "m8", "more"],
];
function colourOf(c) {
	if (c.fails && !c.elements)
		return "lost";
	if (c.status === "agreed" || c.status === "equal")
		return "agreed";
	if (c.status === "missing" || c.status === "extra")
		return "absent";
	const used = fractionOf(c);
	return Number.isNaN(used) ? "none" : bins.find(([top]) => used <= top)[1];
}

// Outside as in the baseline: it does not fail.
const knownOf = (c) => c.since === "known" || c.since === "better";

// Marks beside colours: a dot for outside, a diamond for an origin, a ring for outside as in the
// baseline.
const markOf = (c) => (c.origin ? "◆" : c.fails ? "•" : knownOf(c) ? "○" : "");

function number(x) {
	if (x === null || x === undefined)
		return "–";
	if (typeof x !== "number")
		return String(x);
	const size = Math.abs(x);
	if (x === 0 || (Number.isInteger(x) && size < 1e6))
		return String(x);
	return size < 1e-3 || size >= 1e5 ? x.toExponential(2) : String(Number(x.toPrecision(6)));
}

const short = (x) => number(typeof x === "number" && Number.isFinite(x) ? Number(x.toPrecision(3)) : x);

function times(used) {
	return used === Infinity ? "far beyond its limit" : `${short(used)} × its limit`;
}

// "layer 3, q_rope: OUTSIDE limits, 12 × its limit (nmse_over_floor), origin"
function describe(c) {
	const where = (several ? `candidate ${sides[c.of].letter}, ` : "") + (c.step ? `step ${c.step}, ` : "")
		+ (c.layer >= 0 ? `layer ${c.layer}, ${c.point}` : c.name);
	const used = fractionOf(c);
	const tightest = c.limits.find((l) => (l.limit_fraction === null ? Infinity : l.limit_fraction) === used);
	const status = c.status === "outside" ? "OUTSIDE limits" : c.status === "within" ? "within limits" : c.status;
	return `${where}: ${status}` + (c.since ? ` (${c.since})` : "")
		+ (tightest ? `, ${times(used)} (${tightest.metric})` : "") + (c.origin ? ", an origin" : "");
}

// ---- making elements -------------------------------------------------------------

function fill(e, attributes, children) {
	for (const [key, value] of Object.entries(attributes))
		if (value !== undefined && value !== null && value !== false)
			e.setAttribute(key, value === true ? "" : value);
	e.append(...children.filter((x) => x !== null && x !== undefined));
	return e;
}
// Text in which the codes of unprintable characters are marked; in one element, because buttons lay
// out their children in rows.
function marked(text) {
	const parts = text.split(/(\\u\{[0-9a-f]{1,6}\}|\\x[0-9a-f]{2}|\\[nrt])/);
	const span = (attributes, children) => fill(document.createElement("span"), attributes, children);
	if (parts.length === 1)
		return text;
	return span({}, parts.map((part, i) => (i % 2 ? span({ class: "unprintable" }, [part]) : part)));
}
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes,
	children.map((x) => (typeof x === "string" ? marked(x) : x)));
const draw = (tag, attributes = {}, ...children) => fill(
	document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

function goTo(c, text = labelOf(c)) {
	const button = make("button", { type: "button", class: "link" }, text);
	button.addEventListener("click", () => select(c, { show: true }));
	return button;
}

function table(head, rows, attributes = {}) {
	const cell = (x, i) => make("td", { class: typeof x === "number" ? "value" : undefined, "data-head": head[i] },
		typeof x === "number" ? number(x) : x);
	return make("div", { class: "scroll" }, make("table", attributes,
		make("thead", {}, make("tr", {}, ...head.map((x) => make("th", { scope: "col" }, x)))),
		make("tbody", {}, ...rows.map((r) => make("tr", { class: r.class }, ...r.cells.map(cell))))));
}
