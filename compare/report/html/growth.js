// Curves: the error of one point over the layers, beside its floor and its limit; and bars, one for
// each index of an axis. Both on a logarithmic scale.
const HEIGHT = 240, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 30;

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

// A path through what there is; a gap where a number is missing.
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

// The limit on nmse there, in numbers of nmse.
function limitOf(c) {
	if (c.brief)
		return null;
	const over = c.limits.find((l) => l.metric === "nmse_over_floor" && !l.steps), plain = c.limits.find((l) => /^nmse(_without_floor)?$/.test(l.metric));
	const found = [over && floorOf(c) ? over.limit * floorOf(c) : null, plain ? plain.limit : null].filter((x) => x !== null);
	return found.length ? Math.min(...found) : null;
}

// Of a step, by point: the checkpoint of each layer.
function curvesOf(step) {
	const curves = new Map();
	for (const c of report.checkpoints)
		if (c.layer >= 0 && c.step === step && c.elements)
			curves.set(c.point, [...(curves.get(c.point) ?? []), c]);
	for (const cs of curves.values())
		cs.sort((a, b) => a.layer - b.layer);
	return curves;
}

// The point that is asked for, else the one before, else what a layer hands to the next.
function drawGrowth(wanted) {
	const step = selected.step, curves = curvesOf(step), names = [...curves.keys()];
	const choose = byId("growth-point"), box = byId("growth");
	const point = [wanted, choose.value, "output", names[0]].find((p) => curves.has(p));
	choose.closest("section").hidden = point === undefined;
	if (point === undefined)
		return;
	choose.replaceChildren(...names.map((p) => make("option", { value: p }, p)));
	choose.value = point;
	const mine = curves.get(point);
	const all = [...curves.values()].flat();
	// Also those of which nothing was measured: where they are missing is a gap, and may be what is selected.
	const layers = [...new Set(report.checkpoints.filter((c) => c.step === step && c.layer >= 0).map((c) => c.layer))].sort((a, b) => a - b);
	const scale = scaleOf(all.flatMap((c) => [nmseOf(c), c.layer >= 0 ? floorOf(c) : null]).concat(mine.map(limitOf), mine.map(localOf)));
	if (!scale) {
		box.replaceChildren(make("p", { class: "dim" }, "No error anywhere: nothing to draw."));
		return;
	}
	document.querySelector(".k-local").hidden = !mine.some((c) => c.replay);
	const width = Math.max(260, box.clientWidth), last = layers[layers.length - 1], first = layers[0];
	const x = (layer) => LEFT + (width - LEFT - RIGHT) * (last === first ? 0.5 : (layer - first) / (last - first));
	const line = (cs, value) => path(cs.map((c) => [x(c.layer), value(c) === null ? null : scale.y(value(c))]));
	const every = Math.max(1, Math.ceil(layers.length / (width / 60)));
	const worst = mine.reduce((a, b) => ((nmseOf(b) ?? 0) > (nmseOf(a) ?? 0) ? b : a));
	const title = `nmse of ${point}${step ? ` in step ${step}` : ""} from layer ${mine[0].layer} to ${mine[mine.length - 1].layer}: ${short(nmseOf(mine[0]))} in the first, ${short(nmseOf(mine[mine.length - 1]))} in the last, `
		+ `the largest ${short(nmseOf(worst))} in layer ${worst.layer}` + (floorOf(worst) === null ? "" : ` where the floor is ${short(floorOf(worst))}`);
	box.replaceChildren(draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": title },
		...decades(scale, width),
		...layers.filter((_, i) => i % every === 0).map((l) => draw("text", { x: x(l), y: HEIGHT - 12, "text-anchor": "middle" }, String(l))),
		...[...curves].filter(([name]) => name !== point).map(([, cs]) => draw("path", { class: "other", d: line(cs, nmseOf) })),
		selected && selected.layer >= 0 ? draw("line", { class: "here", x1: x(selected.layer), x2: x(selected.layer), y1: TOP, y2: HEIGHT - BOTTOM }) : null,
		draw("path", { class: "limit", d: line(mine, limitOf) }),
		draw("path", { class: "floor", d: line(mine, floorOf) }),
		draw("path", { class: "local", d: line(mine, localOf) }),
		draw("path", { class: "error", d: line(mine, nmseOf) }),
		...mine.filter((c) => mine.length < 3 && nmseOf(c) !== null).map((c) => draw("circle", { class: "dot", cx: x(c.layer), cy: scale.y(nmseOf(c)), r: 3 })),
		...mine.filter((c) => c.fails && nmseOf(c) !== null).map((c) => draw("circle", { class: "beyond", cx: x(c.layer), cy: scale.y(nmseOf(c)), r: 2.5 }))),
		make("p", { class: "dim" }, `${title}.`));
}

// One stroke for each index; a thousand of them are one path.
function bars(values, together, name) {
	const height = 130, width = Math.min(340, Math.max(240, byId("detail-body").clientWidth));
	const least = values.reduce((a, v) => (v > 0 && v < a ? v : a), Infinity);
	const scale = scaleOf(values.concat(least / 2), height); // so that the least has a height
	if (!scale)
		return make("p", { class: "dim" }, "no error");
	const step = (width - LEFT - RIGHT) / values.length, x = (i) => LEFT + step * (i + 0.5), base = height - BOTTOM;
	const worst = values.reduce((best, v, i) => (v > values[best] ? i : best), 0);
	const from = (i) => i * together;
	const title = `${name}: nmse of each of the ${together > 1 ? `${values.length} runs of ${together}` : values.length}; the largest, ${short(values[worst])}, at ${from(worst)}`;
	const every = Math.max(1, Math.ceil(values.length / 8));
	return make("figure", {}, draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title },
		...decades(scale, width),
		draw("path", { class: "bars", "stroke-width": Math.max(0.6, step * 0.8), d: values.map((v, i) => `M${x(i).toFixed(1)} ${base}V${Math.min(base - 1, scale.y(v)).toFixed(1)}`).join("") }),
		...values.map((_, i) => i).filter((i) => i % every === 0).map((i) => draw("text", { x: x(i), y: height - 12, "text-anchor": "middle" }, String(from(i))))),
		make("figcaption", { class: "dim" }, title));
}

function startGrowth() {
	byId("growth-point").addEventListener("change", () => drawGrowth(byId("growth-point").value));
	addEventListener("resize", () => drawGrowth());
}
