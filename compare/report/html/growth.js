// Curves: the error of one point over the layers, and of one checkpoint over the steps, beside its
// floor and its limit; and bars, one for each index of an axis. Both on a logarithmic scale.
const HEIGHT = 250, LEFT = 56, RIGHT = 12, TOP = 22, BOTTOM = 40;

// Decades of positive numbers, and the way from a number to a place between top and bottom.
function scaleOf(values, height = HEIGHT) {
	const logs = values.filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10);
	if (!logs.length)
		return null;
	let low = logs.reduce((a, b) => Math.min(a, b)), high = logs.reduce((a, b) => Math.max(a, b));
	low = Math.floor(low);
	high = Math.max(Math.ceil(high), low + 1);
	const top = (x) => (Number.isFinite(x) ? Math.min(high, Math.max(low, x > 0 ? Math.log10(x) : low)) : high);
	return { low, high, y: (x) => TOP + (height - TOP - BOTTOM) * (high - top(x)) / (high - low) };
}

function decades(scale, width) {
	const every = Math.ceil((scale.high - scale.low) / 6), out = [];
	for (let k = scale.low; k <= scale.high; k += every) {
		const y = scale.y(10 ** k);
		out.push(draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
			draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, k === 0 ? "1" : `1e${k}`));
	}
	return out;
}

// A path through the numbers, with a gap where one is missing.
function path(points) {
	let down = false, d = "";
	for (const [x, y] of points) {
		if (y === null) {
			down = false;
			continue;
		}
		d += `${down ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
		down = true;
	}
	return d;
}

const nmseOf = (c) => (c.elements ? c.metrics.nmse ?? Infinity : null);
const localOf = (c) => (c.replay ? c.replay.local ?? Infinity : null);
const floorOf = (c) => c.floor?.nmse ?? null;

// The limit on nmse at a checkpoint, as an nmse.
function limitOf(c) {
	if (c.brief)
		return null;
	const over = c.limits.find((l) => l.metric === "nmse_over_floor" && !l.steps);
	const plain = c.limits.find((l) => /^nmse(_without_floor)?$/.test(l.metric));
	const found = [over && floorOf(c) ? over.limit * floorOf(c) : null, plain ? plain.limit : null];
	const limits = found.filter((x) => x !== null);
	return limits.length ? Math.min(...limits) : null;
}

// The checkpoints of a step and a candidate, by point and layer.
function curvesOf(side, step) {
	const curves = new Map();
	for (const c of side.report.checkpoints)
		if (c.layer >= 0 && c.step === step && c.elements) {
			if (!curves.has(c.point))
				curves.set(c.point, []);
			curves.get(c.point).push(c);
		}
	for (const cs of curves.values())
		cs.sort((a, b) => a.layer - b.layer);
	return curves;
}

// One chart: places along the axis, the curves of each candidate, and faint curves. of: index in
// `lines` of the selected curve, whose limit, floor and local error are drawn. at: maps a
// checkpoint to its place on the axis.
function chart({ ticks, lines, others = [], of, at, axis, label, box }) {
	const mine = lines[of];
	const errors = [...lines, ...others].flatMap((cs) => cs.flatMap((c) => [nmseOf(c), floorOf(c)]));
	const scale = scaleOf(errors.concat(mine.map(limitOf), mine.map(localOf)));
	if (!scale)
		return make("p", { class: "dim" }, "No error anywhere: nothing to draw.");
	const width = Math.max(260, box.clientWidth), first = ticks[0], last = ticks[ticks.length - 1];
	const x = (where) => LEFT + (width - LEFT - RIGHT) * (last === first ? 0.5 : (where - first) / (last - first));
	const line = (cs, value) => path(cs.map((c) => [x(at(c)), value(c) === null ? null : scale.y(value(c))]));
	const every = Math.max(1, Math.ceil(ticks.length / (width / 60)));
	const dots = (cs, name, r) => cs.filter((c) => nmseOf(c) !== null).map(
		(c) => draw("circle", { class: name, cx: x(at(c)), cy: scale.y(nmseOf(c)), r }));
	const letter = (cs, i) => { // at the end of the curve
		const end = cs.findLast((c) => nmseOf(c) !== null);
		if (!several || !end)
			return null;
		const place = { x: x(at(end)) + (at(end) === last ? -8 : 4), y: scale.y(nmseOf(end)) - 5 };
		return draw("text", { class: `s${i}`, ...place }, sides[i].letter);
	};
	const hover = draw("line", { class: "hover", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
	const frame = { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT };
	const svg = draw("svg", { ...frame, role: "img", "aria-label": label },
		...decades(scale, width),
		draw("text", { class: "axis", x: 4, y: 12 }, "nmse"),
		draw("text", { class: "axis", x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, axis),
		hover,
		...ticks.filter((_, i) => i % every === 0).map(
			(l) => draw("text", { x: x(l), y: HEIGHT - 22, "text-anchor": "middle" }, String(l))),
		...others.map((cs) => draw("path", { class: "other", d: line(cs, nmseOf) })),
		draw("line", { class: "here", x1: x(at(selected)), x2: x(at(selected)), y1: TOP, y2: HEIGHT - BOTTOM }),
		draw("path", { class: "limit", d: line(mine, limitOf) }),
		draw("path", { class: "floor", d: line(mine, floorOf) }),
		draw("path", { class: "local", d: line(mine, localOf) }),
		...lines.map((cs, i) => draw("path", { class: `error s${i}`, d: line(cs, nmseOf) })),
		...lines.map(letter),
		...(ticks.length < 3 ? lines.flatMap((cs, i) => dots(cs, `dot s${i}`, 3)) : []),
		...lines.flatMap((cs) => dots(cs.filter((c) => c.fails), "beyond", 2.5)));
	// The values of all curves at the place nearest to the pointer; a click selects it.
	const nearest = (event) => {
		const there = svg.getBoundingClientRect(), mouse = (event.clientX - there.left) * width / there.width;
		return ticks.reduce((a, b) => (Math.abs(x(b) - mouse) < Math.abs(x(a) - mouse) ? b : a));
	};
	const there = (where) => lines.map((cs) => cs.find((c) => at(c) === where));
	svg.addEventListener("mousemove", (event) => {
		const where = nearest(event), found = there(where);
		fill(hover, { x1: x(where), x2: x(where), visibility: "visible" }, []);
		const limit = found[of] ? limitOf(found[of]) : null;
		showTip(event, [`${axis} ${where}`, ...found.flatMap((c, i) => (c
			? [(several ? `${sides[i].letter}: ` : "") + `nmse ${short(nmseOf(c))}, floor ${short(floorOf(c))}`
				+ (c.replay ? `, itself ${short(localOf(c))}` : "")] : [])),
		...(limit === null ? [] : [`limit ${short(limit)}`])]);
	});
	svg.addEventListener("mouseleave", (event) => {
		hover.setAttribute("visibility", "hidden");
		showTip(event, null);
	});
	svg.addEventListener("click", (event) => {
		const c = there(nearest(event))[of];
		if (c)
			select(c);
	});
	return svg;
}

// The keys of what the chart in a box draws.
function showKeys(box) {
	for (const name of ["local", "floor", "limit", "beyond"]) {
		const drawn = box.querySelector(`circle.${name}, path.${name}[d*=L]`);
		box.closest("section").querySelector(`.k-${name}`).hidden = !drawn;
	}
}

const largest = (cs) => cs.reduce((a, b) => ((nmseOf(b) ?? 0) > (nmseOf(a) ?? 0) ? b : a));
const spoken = (cs, i, what) => {
	const worst = largest(cs);
	const ends = `${short(nmseOf(cs[0]))} in the first, ${short(nmseOf(cs[cs.length - 1]))} in the last`;
	return (several ? `${sides[i].letter}: ` : "") + `${ends}, the largest ${short(nmseOf(worst))} in ${what(worst)}`
		+ (floorOf(worst) === null ? "" : ` where the floor is ${short(floorOf(worst))}`);
};

// The requested point, else the previous one, else a layer's output.
function drawGrowth(wanted) {
	const step = selected.step, curves = sides.map((s) => curvesOf(s, step));
	const names = [...new Set(curves.flatMap((x) => [...x.keys()]))];
	const choose = byId("growth-point"), box = byId("growth");
	const point = [wanted, choose.value, "output", names[0]].find((p) => names.includes(p));
	choose.closest("section").hidden = point === undefined;
	drawSteps();
	if (point === undefined)
		return;
	choose.replaceChildren(...names.map((p) => make("option", { value: p }, p)));
	choose.value = point;
	const lines = curves.map((x) => x.get(point) ?? []);
	// Includes unmeasured checkpoints: they are gaps in the curve, and may be selected.
	const inStep = sides.flatMap((s) => s.report.checkpoints.filter((c) => c.step === step && c.layer >= 0));
	const layers = [...new Set(inStep.map((c) => c.layer))].sort((a, b) => a - b);
	const there = lines.findIndex((cs) => cs.length), of = lines[selected.of].length ? selected.of : there;
	const range = `from layer ${layers[0]} to ${layers[layers.length - 1]}`;
	const label = `nmse of ${point}${step ? ` in step ${step}` : ""} ${range}: `
		+ lines.flatMap((cs, i) => (cs.length ? [spoken(cs, i, (c) => `layer ${c.layer}`)] : [])).join("; ");
	const others = several ? [] : [...curves[0]].filter(([name]) => name !== point).map(([, cs]) => cs);
	box.replaceChildren(chart({ ticks: layers, lines, others, of, at: (c) => c.layer, axis: "layer", label, box }),
		make("p", { class: "dim" }, `${label}.`));
	showKeys(box);
}

// The same checkpoint in every step.
function drawSteps() {
	const box = byId("steps"), name = selected.name;
	const same = (s) => s.report.checkpoints.filter((c) => c.name === name && c.elements);
	const lines = sides.map((s) => same(s).sort((a, b) => a.step - b.step));
	const steps = [...new Set(lines.flat().map((c) => c.step))].sort((a, b) => a - b);
	byId("steps-section").hidden = steps.length < 2;
	if (steps.length < 2)
		return;
	const of = lines[selected.of].length ? selected.of : lines.findIndex((cs) => cs.length);
	const label = `nmse of ${name} from step ${steps[0]} to ${steps[steps.length - 1]}: `
		+ lines.flatMap((cs, i) => (cs.length ? [spoken(cs, i, (c) => `step ${c.step}`)] : [])).join("; ");
	box.replaceChildren(chart({ ticks: steps, lines, of, at: (c) => c.step, axis: "step", label, box }),
		make("p", { class: "dim" }, `${label}.`));
	showKeys(box);
}

// One stroke for each index; a thousand of them are one path.
function bars(values, together, name) {
	const height = 150, width = Math.min(340, Math.max(240, byId("detail-body").clientWidth));
	const least = values.reduce((a, v) => (v > 0 && v < a ? v : a), Infinity);
	const scale = scaleOf(values.concat(least / 2), height); // so that the least has a height
	if (!scale)
		return make("p", { class: "dim" }, "no error");
	const step = (width - LEFT - RIGHT) / values.length, x = (i) => LEFT + step * (i + 0.5), base = height - BOTTOM;
	const worst = values.reduce((best, v, i) => (v > values[best] ? i : best), 0);
	const from = (i) => i * together;
	const sums = together > 1 ? `${values.length} runs of ${together}` : values.length;
	const title = `${name}: nmse of each of the ${sums}; the largest, ${short(values[worst])}, at ${from(worst)}`;
	const every = Math.max(1, Math.ceil(values.length / 8));
	const strokes = values.map((v, i) => `M${x(i).toFixed(1)} ${base}V${Math.min(base - 1, scale.y(v)).toFixed(1)}`);
	const shape = { viewBox: `0 0 ${width} ${height}`, width, height };
	const svg = draw("svg", { ...shape, role: "img", "aria-label": title },
		...decades(scale, width),
		draw("path", { class: "bars", "stroke-width": Math.max(0.6, step * 0.8), d: strokes.join("") }),
		...values.map((_, i) => i).filter((i) => i % every === 0).map(
			(i) => draw("text", { x: x(i), y: height - 26, "text-anchor": "middle" }, String(from(i)))),
		draw("text", { class: "axis", x: 4, y: 12 }, "nmse"),
		draw("text", { class: "axis", x: width / 2, y: height - 8, "text-anchor": "middle" }, name));
	svg.addEventListener("mousemove", (event) => {
		const box = svg.getBoundingClientRect(), mouse = (event.clientX - box.left) * width / box.width;
		const i = Math.min(values.length - 1, Math.max(0, Math.floor((mouse - LEFT) / step)));
		showTip(event, [`${name} ${from(i)}` + (together > 1 ? ` to ${from(i + 1) - 1}` : ""),
			`nmse ${short(values[i])}`]);
	});
	svg.addEventListener("mouseleave", (event) => showTip(event, null));
	return make("figure", {}, svg, make("figcaption", { class: "dim" }, title));
}

function startGrowth() {
	const key = document.querySelector(".key").cloneNode(true);
	key.querySelector(".k-other").remove();
	byId("steps").before(key);
	byId("growth-point").addEventListener("change", () => drawGrowth(byId("growth-point").value));
	addEventListener("resize", () => drawGrowth());
}
