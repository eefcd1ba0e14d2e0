// The graph of a layer: the operations of the plan as boxes, from top to bottom in the order of
// their inputs, in the colours of the map; and the way of the error from an origin to the logits.
const BOX = { width: 128, height: 26, across: 14, down: 22 };

// From a plan: the operation that makes each name, and the readers of each operation.
function wiring(plan) {
	const by = new Map(), readers = plan.map(() => []);
	plan.forEach((n, i) => {
		n.out.forEach((name) => by.set(name, i));
		n.in.forEach((from) => readers[from].push(i));
	});
	return { by, readers };
}

// The shortest way from one operation to another along its readers, or null.
function way(readers, from, to) {
	const before = new Map([[from, null]]), queue = [from];
	for (let k = 0; k < queue.length; k++) {
		if (queue[k] === to) {
			const found = [];
			for (let at = to; at !== null; at = before.get(at))
				found.unshift(at);
			return found;
		}
		for (const next of readers[queue[k]])
			if (!before.has(next)) {
				before.set(next, queue[k]);
				queue.push(next);
			}
	}
	return null;
}

// All operations that an origin reaches: the error may be in each.
function reached(readers, from) {
	const all = new Set(from), queue = [...from];
	for (let k = 0; k < queue.length; k++)
		for (const next of readers[queue[k]])
			if (!all.has(next)) {
				all.add(next);
				queue.push(next);
			}
	return all;
}

const checkpointOf = (name) => side.find(labelOf({ name, step: selected.step }));
const pointOf = (name) => name.replace(/^layer\d+\./, "");
// The farthest outside of an operation's outputs, or of an output's two names.
function shownAs(n) {
	const there = n.out.map(checkpointOf).filter((c) => c);
	return there.length ? there.reduce((a, b) => ((fractionOf(b) || 0) > (fractionOf(a) || 0) ? b : a)) : null;
}

function originsHere(by) {
	const found = report.origins.map((label) => side.find(label));
	return found.filter((c) => c && c.step === selected.step && by.has(c.name)).map((c) => by.get(c.name));
}

// "layer3.q_rope, attn_context, attn_out, then layers 4 to 23, final_norm, logits"; each name is a
// way to its details.
function drawPath(plan, { by, readers }, origins) {
	const logits = by.get("logits"), here = by.get(selected.name);
	const start = origins.includes(here) ? here : origins[0];
	const found = start === undefined || logits === undefined ? null : way(readers, start, logits);
	if (!found) {
		byId("path").replaceChildren(report.origins.length ? "No origin of this step is in the plan."
			: report.checkpoints.some((c) => c.fails) ? "No origin is known: no path to show."
				: "Nothing is outside its limits: no path to show.");
		return;
	}
	const words = ["From the origin to the logits: "], layer = plan[start].layer;
	let last = null;
	found.forEach((i, k) => {
		const n = plan[i], c = shownAs(n), inside = n.layer >= 0 && n.layer !== layer;
		if (!inside)
			words.push(k ? " → " : "", c ? goTo(c, k ? pointOf(c.name) : labelOf(c)) : pointOf(n.out[0]));
		else if (last !== "inside") {
			const ends = found.filter((j) => plan[j].layer >= 0 && plan[j].layer !== layer).map((j) => plan[j].layer);
			words.push(` → ${range("layer", ends)}`);
		}
		last = inside ? "inside" : "shown";
	});
	byId("path").replaceChildren(...words);
}

// Rows: an operation is below all operations that it reads. Inputs from outside the layer come
// first.
function rowsOf(plan, layer) {
	const mine = plan.flatMap((n, i) => (n.layer === layer ? [i] : []));
	const outside = [...new Set(mine.flatMap((i) => plan[i].in).filter((i) => plan[i].layer !== layer))];
	const depth = new Map(outside.map((i) => [i, 0])), rows = [outside];
	for (const i of mine) {
		const below = Math.max(...plan[i].in.map((from) => depth.get(from) ?? 0), 0);
		const d = below + (outside.length || plan[i].in.length ? 1 : 0);
		depth.set(i, d);
		(rows[d] ??= []).push(i);
	}
	return rows.filter((r) => r?.length);
}

function box(plan, i, [x, y]) {
	const n = plan[i], c = shownAs(n), name = c ? c.name : n.out[0] ?? n.op;
	const words = n.layer === selected.layer || n.layer < 0 ? pointOf(name) : name;
	const said = c ? `${n.op}: ${describe(c)}` : `${n.op}: ${name}, not recorded`;
	const at = { x, y, width: BOX.width, height: BOX.height, rx: 4 };
	const text = (c ? markOf(c) : "") + (words.length > 19 ? `${words.slice(0, 18)}…` : words);
	const g = draw("g", {
		class: `box${n.out.includes(selected.name) ? " here" : ""}`,
		role: c ? "button" : "img",
		tabindex: c ? 0 : undefined,
		"aria-label": said,
	},
	draw("title", {}, said),
	draw("rect", { class: c ? colourOf(c) : "absent", ...at }),
	draw("text", { x: x + BOX.width / 2, y: y + 17, "text-anchor": "middle" }, text));
	if (c) {
		g.addEventListener("click", () => select(c));
		g.addEventListener("keydown", (event) => {
			if (event.key === "Enter" || event.key === " ") {
				event.preventDefault();
				select(c, { show: true });
			}
		});
	}
	return g;
}

function drawGraph() {
	const plan = report.plan, at = byId("graph");
	at.closest("section").hidden = !plan;
	if (!plan)
		return;
	const wires = wiring(plan), origins = originsHere(wires.by), bad = reached(wires.readers, origins);
	const rows = rowsOf(plan, selected.layer);
	const across = BOX.width + BOX.across, down = BOX.height + BOX.down;
	const most = Math.max(...rows.map((r) => r.length));
	const width = most * across + BOX.across, height = rows.length * down + BOX.down;
	const where = new Map(rows.flatMap((r, y) => r.map((i, x) => [i,
		[(width - r.length * across + BOX.across) / 2 + x * across, BOX.down / 2 + y * down]])));
	const drawEdge = (from, to) => {
		const [x1, y1] = where.get(from), [x2, y2] = where.get(to), middle = BOX.width / 2, bend = BOX.down;
		return draw("path", { class: bad.has(from) && bad.has(to) ? "edge path" : "edge",
			d: `M${x1 + middle} ${y1 + BOX.height}C${x1 + middle} ${y1 + BOX.height + bend} `
				+ `${x2 + middle} ${y2 - bend} ${x2 + middle} ${y2}` });
	};
	const readBy = (to) => (plan[to].layer === selected.layer ? plan[to].in.filter((from) => where.has(from)) : []);
	const edges = [...where.keys()].flatMap((to) => readBy(to).map((from) => drawEdge(from, to)));
	const what = selected.layer < 0 ? "the operations outside layers" : `layer ${selected.layer}`;
	const title = selected.layer < 0 ? "Graph outside the layers" : `Graph of layer ${selected.layer}`;
	const label = `the plan of ${what}: ${rows.flat().length} operations`;
	byId("graph-title").textContent = title;
	at.replaceChildren(draw("svg",
		{ viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label },
		...edges.filter((e) => !e.classList.contains("path")), ...edges.filter((e) => e.classList.contains("path")),
		...[...where].map(([i, xy]) => box(plan, i, xy))));
	byId("graph-key").textContent = [
		edges.some((e) => e.classList.contains("path")) ? "Red lines: the way of the error." : "",
		at.querySelector("rect.absent") ? "Dashed boxes: not recorded." : "",
	].join(" ");
	drawPath(plan, wires, origins);
}
