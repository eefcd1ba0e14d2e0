/* propose_places.c: the checkpoints of the reference, and how far a tensor is from each; see
 * propose_internal.h. */
#include "capture/names/propose_internal.h"

#include "capture/recording/numbers.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const vn_fused vn_fused_of[VN_FUSED] = {
	[VN_FUSED_QKV] = { "qkv", 3, { VN_POINT_Q_PROJ, VN_POINT_K_PROJ, VN_POINT_V_PROJ } },
	[VN_FUSED_KV] = { "kv", 2, { VN_POINT_K_PROJ, VN_POINT_V_PROJ } },
	[VN_FUSED_GATE_UP] = { "gate_up", 2, { VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ } },
	[VN_FUSED_UP_GATE] = { "up_gate", 2, { VN_POINT_UP_PROJ, VN_POINT_GATE_PROJ } },
	[VN_FUSED_QKVZ] = { "qkvz", 2, { VN_POINT_GDN_QKV, VN_POINT_GDN_Z } },
	[VN_FUSED_BA] = { "ba", 2, { VN_POINT_GDN_B, VN_POINT_GDN_A } },
};

/* ---- samples ------------------------------------------------------------------------------- */

VN_ORDER_BY(by_value, float, VN_ORDER(*x, *y))

/* Divides by the median, compresses, and makes the length one. */
static void finish_sample(vn_tensor_sample *s, int n)
{
	float  size[VN_SAMPLES];
	double sum = 0;
	s->n = 0;
	for (int i = 0; i < n; i++) {
		if (!isfinite(s->x[i]))
			return;
		size[i] = fabsf(s->x[i]);
		sum += (double)s->x[i] * s->x[i];
	}
	if (n < VN_FEW_SAMPLES || !(sum > 0) || !isfinite(sum))
		return;
	qsort(size, (size_t)n, sizeof *size, by_value);
	/* of probabilities more than half are zero */
	s->scale = size[n / 2] > 0 ? size[n / 2] : (float)sqrt(sum / n);
	sum = 0;
	for (int i = 0; i < n; i++) {
		s->x[i] = asinhf(s->x[i] / s->scale);
		sum += (double)s->x[i] * s->x[i];
	}
	if (!(sum > 0) || !isfinite(sum))
		return;
	for (int i = 0; i < n; i++)
		s->x[i] = (float)(s->x[i] / sqrt(sum));
	s->n = n;
}

double vn_tensor_sample_distance(const vn_tensor_sample *a, const vn_tensor_sample *b)
{
	float part[16] = { 0 };
	if (!a->n || a->n != b->n)
		return 1;
	for (int i = 0; i < a->n; i++) {
		const float d = a->x[i] - b->x[i];
		part[i % 16] += d * d;
	}
	double m = 0; /* 2 - 2 cos */
	for (int k = 0; k < 16; k++)
		m += part[k];
	const double ratio = log((double)a->scale / (double)b->scale), way = ratio * ratio < 10 ? ratio * ratio : 10;
	return m * (1 - m / 4) + 0.01 * way;
}

/* An element of a tensor: which sample it is. */
typedef struct sampled_at {
	int64_t at;
	int     to;
} sampled_at;

VN_ORDER_BY(by_at, sampled_at, VN_ORDER(x->at, y->at))

/* Reads elements (n) of an entry into s->x, in the order of the file. */
static vn_status read_elements(vn_recording *r, int entry, sampled_at *list, int n, float *x, vn_error *err)
{
	vn_numbers *numbers = vn_numbers_open(r, entry, err);
	qsort(list, (size_t)n, sizeof *list, by_at);
	for (int i = 0; i < n; i++)
		x[list[i].to] = (float)vn_numbers_value(numbers, list[i].at);
	const vn_status st = numbers->st;
	vn_numbers_close(numbers);
	return st;
}

vn_status vn_kind_sample(const vn_spot_kind *k, vn_recording *r, int entry, vn_stack_slice in, vn_tensor_sample *s,
                         vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	sampled_at      list[VN_SAMPLES];
	vn_dims         d;
	const char     *why;
	int64_t         stride[VN_MAX_RANK], step = 1, first = 0;

	s->n = 0;
	if (!vn_dims_parse(in.layout, &d, &why))
		return VN_OK;
	for (int i = d.n - 1; i >= 0; i--) {
		if (in.layers && strcmp(d.atom[i].word, "layer") == 0) {
			first = in.index * step;
			step *= in.layers;
		}
		for (int a = 0; a < k->n_axes; a++)
			if (strcmp(d.atom[i].word, k->axis[a].word) == 0) {
				stride[a] = step;
				step *= k->axis[a].size;
			}
	}
	if (step != vn_shape_count(&e->shape))
		return VN_OK;
	for (int i = 0; i < k->n; i++) {
		list[i] = (sampled_at) { first, i };
		for (int a = 0; a < k->n_axes; a++)
			list[i].at += k->index[i * k->n_axes + a] * stride[a];
	}
	const vn_status st = read_elements(r, entry, list, k->n, s->x, err);
	if (!st)
		finish_sample(s, k->n);
	return st;
}

/* The sample of a place of the reference: of a fused product, element j of a row is in the part
 * where j falls. */
static vn_status sample_place(vn_spots *p, vn_spot *x, vn_error *err)
{
	const vn_spot_kind *k = &p->kind[x->kind];
	sampled_at          list[VN_SAMPLES];
	int64_t             before = 0;

	for (int part = 0; part < x->n_entries; part++) {
		const vn_entry *e = vn_recording_entry(p->like, x->entry[part]);
		const int64_t   row = vn_shape_count(&e->shape) / (e->shape.dim[0] ? e->shape.dim[0] : 1);
		int             n = 0;
		for (int i = 0; i < k->n; i++) {
			const int64_t *index = &k->index[i * k->n_axes];
			int64_t        at = 0;
			if (k->fused) {
				if (index[1] < before || index[1] >= before + row)
					continue;
				at = (index[0] + k->shift[0]) * row + index[1] - before;
			}
			for (int a = 0; !k->fused && a < k->n_axes; a++)
				at = at * k->mine[a] + index[a] + k->shift[a];
			list[n++] = (sampled_at) { at, i };
		}
		before += row;
		const vn_status st = read_elements(p->like, x->entry[part], list, n, x->sample.x, err);
		if (st)
			return st;
	}
	finish_sample(&x->sample, k->n);
	return VN_OK;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

/* A number that looks random, the same in every run. */
static uint64_t scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Chooses the indices: all, if they are few. */
static bool choose_indices(vn_spot_kind *k)
{
	int64_t most[VN_MAX_RANK], all = 1;
	for (int a = 0; a < k->n_axes; a++) {
		most[a] = k->axis[a].size < k->mine[a] ? k->axis[a].size : k->mine[a];
		all = all > VN_SAMPLES || most[a] < 1 ? all : all * most[a];
		if (most[a] < 1)
			return false;
	}
	k->n = all < VN_SAMPLES ? (int)all : VN_SAMPLES;
	if (k->n < VN_FEW_SAMPLES)
		return false;
	k->index = vn_alloc((size_t)(k->n * k->n_axes), sizeof *k->index);
	for (int i = 0; i < k->n; i++) {
		int64_t rest = i;
		for (int a = k->n_axes - 1; a >= 0; a--) {
			const uint64_t any = scramble((uint64_t)i * 8 + (uint64_t)a) >> 1;
			k->index[i * k->n_axes + a] = (k->n < VN_SAMPLES ? rest : (int64_t)any) % most[a];
			rest /= most[a];
		}
	}
	return true;
}

static bool same_kind(const vn_spot_kind *x, const vn_spot_kind *y)
{
	bool same = x->step == y->step && x->n_axes == y->n_axes && x->fused == y->fused;
	for (int a = 0; same && a < x->n_axes; a++)
		same = strcmp(x->axis[a].word, y->axis[a].word) == 0 && x->axis[a].size == y->axis[a].size &&
		       x->mine[a] == y->mine[a] && x->shift[a] == y->shift[a];
	return same;
}

/* Returns the kind, a new one if necessary; -1: there is nothing to sample. */
static int kind_of(vn_spots *p, const vn_spot_kind *like)
{
	for (int k = p->n_kinds - 1; k >= 0; k--)
		if (same_kind(&p->kind[k], like))
			return p->kind[k].n ? k : -1;
	p->kind = vn_alloc_grown(p->kind, (size_t)p->n_kinds, sizeof *p->kind);
	vn_spot_kind *k = &p->kind[p->n_kinds++];
	*k = *like;
	k->n = 0;
	if (!choose_indices(k)) {
		k->n = 0;
		return -1;
	}
	return p->n_kinds - 1;
}

bool vn_kind_layout(const vn_spot_kind *k, const vn_shape *shape, int layout, char text[VN_LAYOUT_DIMS])
{
	char      list[VN_LAYOUTS][VN_LAYOUT_DIMS];
	const int n = vn_layouts(shape, k->axis, k->n_axes, list);
	if (layout >= n)
		return false;
	memcpy(text, list[layout], VN_LAYOUT_DIMS);
	return true;
}

/* ---- places --------------------------------------------------------------------------------- */

static vn_spot *add_place(vn_spots *p, const vn_spot *x)
{
	p->place = vn_alloc_grown(p->place, (size_t)p->n, sizeof *p->place);
	p->place[p->n] = *x;
	p->place[p->n].group = p->n;
	return &p->place[p->n++];
}

/* The lengths in the dump: those of the reference, but the dump's own tokens and keys. last: only
 * the last row. */
static bool describe_kind(const vn_entry *e, const vn_step *mine, const vn_step *cand, bool last, vn_spot_kind *k)
{
	*k = (vn_spot_kind) { .step = cand->number };
	k->n_axes = vn_axis_lengths(vn_entry_axes(e), &e->shape, k->axis);
	for (int a = 0; a < k->n_axes; a++) {
		vn_axis_length *x = &k->axis[a];
		k->mine[a] = x->size;
		if (strcmp(x->word, "token") == 0 && (last || x->size == mine->tokens)) {
			k->shift[a] = last ? x->size - 1 : 0;
			x->size = last ? 1 : cand->tokens;
		} else if (strcmp(x->word, "key") == 0 && x->size == mine->position + mine->tokens) {
			x->size = cand->position + cand->tokens;
		}
	}
	return k->n_axes > 0;
}

/* Adds an entry under a name, which may be an alias of the plan. */
static vn_status add_entry(vn_spots *p, int entry, const char *name, const vn_step *cand, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(p->like, entry);
	const vn_step  *mine = vn_recording_step(p->like, e->step);
	vn_spot_kind    k;
	vn_point        point;

	if (e->dtype == VN_I32 || !vn_point_from_name(vn_name_in_layer(name), &point))
		return VN_OK;
	for (int last = 0; last <= (vn_point_get(point)->place == VN_BEHIND_LAYERS && cand->tokens > 1); last++) {
		vn_spot x = { .point = (int)point,
			          .layer = vn_name_layer(name),
			          .step = cand->number,
			          .order = entry,
			          .entry = { entry },
			          .n_entries = 1 };
		strcpy(x.name, name);
		if (!describe_kind(e, mine, cand, last, &k) || (x.kind = kind_of(p, &k)) < 0)
			continue;
		const vn_status st = sample_place(p, add_place(p, &x), err);
		if (st)
			return st;
	}
	return VN_OK;
}

/* Adds a fused product of a layer, if its parts are there and it is no checkpoint itself. */
static vn_status add_fused(vn_spots *p, int which, int layer, const vn_step *cand, vn_error *err)
{
	const vn_fused *f = &vn_fused_of[which];
	vn_spot         x = { .point = VN_N_POINTS + which, .layer = layer, .step = cand->number, .n_entries = f->n };
	vn_spot_kind    k = { .step = cand->number, .n_axes = 2, .fused = true };
	char            name[VN_NAME_MAX];

	snprintf(name, sizeof name, "layer%d.%s", layer, vn_point_get(VN_POINT_C_ATTN)->name);
	if ((which == VN_FUSED_QKV || which == VN_FUSED_KV) && vn_recording_find(p->like, cand->number, name) >= 0)
		return VN_OK;
	strcpy(k.axis[0].word, "token");
	strcpy(k.axis[1].word, f->along);
	for (int i = 0; i < f->n; i++) {
		snprintf(name, sizeof name, "layer%d.%s", layer, vn_point_get(f->part[i])->name);
		if ((x.entry[i] = vn_recording_find(p->like, cand->number, name)) < 0)
			return VN_OK;
		const vn_entry *e = vn_recording_entry(p->like, x.entry[i]);
		if (e->shape.rank < 1 || e->shape.dim[0] < 1 || strncmp(vn_entry_axes(e), "token", 5) != 0 ||
		    (i && e->shape.dim[0] != k.mine[0]))
			return VN_OK;
		k.mine[0] = e->shape.dim[0];
		k.mine[1] += vn_shape_count(&e->shape) / e->shape.dim[0];
	}
	k.axis[0].size = cand->tokens;
	k.axis[1].size = k.mine[1];
	x.order = x.entry[0];
	if ((x.kind = kind_of(p, &k)) < 0)
		return VN_OK;
	return sample_place(p, add_place(p, &x), err);
}

/* Adds second names that the plan has for an entry. */
static vn_status add_aliases(vn_spots *p, const vn_step *cand, vn_error *err)
{
	const vn_plan *plan = vn_recording_plan(p->like);
	vn_status      st = VN_OK;
	for (int v = 0; plan && !st && v < plan->n_values; v++) {
		const int entry = vn_recording_find(p->like, cand->number, plan->value[v].name);
		if (entry >= 0 && strcmp(vn_recording_entry(p->like, entry)->name, plan->value[v].name) != 0)
			st = add_entry(p, entry, plan->value[v].name, cand, err);
	}
	return st;
}

/* Places whose entries have the same numbers in one order are one group. */
typedef struct digested {
	vn_digest_bytes digest;
	int             entry, place;
	bool            known;
} digested;

VN_ORDER_BY(by_digest, digested, VN_ORDER(y->known, x->known),
            x->known ? memcmp(&x->digest, &y->digest, sizeof x->digest) : 0, VN_ORDER(x->entry, y->entry))

static void group_places(vn_spots *p, int from)
{
	const int          n = p->n - from;
	VN_FREED digested *list = vn_alloc((size_t)n, sizeof *list);
	for (int i = 0; i < n; i++) {
		const vn_spot  *x = &p->place[from + i];
		const vn_entry *e = vn_recording_entry(p->like, x->entry[0]);
		/* part of a fused product: not the same as the product */
		list[i] = (digested) { e->digest, x->n_entries > 1 ? -1 - i : x->entry[0], from + i,
			                   x->n_entries == 1 && e->has_digest && !e->viewed };
	}
	qsort(list, (size_t)n, sizeof *list, by_digest);
	for (int i = 1; i < n; i++) {
		const digested *x = &list[i - 1], *y = &list[i];
		if (x->entry == y->entry || (x->known && y->known && memcmp(&x->digest, &y->digest, sizeof x->digest) == 0))
			p->place[y->place].group = p->place[x->place].group;
	}
}

vn_status vn_spots_add(vn_spots *p, const vn_step *cand, vn_error *err)
{
	const vn_step *mine = vn_recording_step(p->like, cand->number);
	const int      first = p->n;
	vn_status      st = VN_OK;
	/* Tokens of other calls cannot be lined up, except the first ones. */
	if (!mine || mine->position != cand->position || (mine->tokens != cand->tokens && cand->number > 0))
		return VN_OK;
	for (int e = 0; !st && e < vn_recording_count(p->like); e++)
		if (vn_recording_entry(p->like, e)->step == cand->number)
			st = add_entry(p, e, vn_recording_entry(p->like, e)->name, cand, err);
	st = st ? st : add_aliases(p, cand, err);
	for (int layer = 0; !st && layer < vn_recording_layers(p->like); layer++)
		for (int f = 0; !st && f < VN_FUSED; f++)
			st = add_fused(p, f, layer, cand, err);
	if (!st)
		group_places(p, first);
	return st;
}

VN_ORDER_BY(by_place, vn_spot, VN_ORDER(x->step, y->step), VN_ORDER(x->point, y->point), VN_ORDER(x->layer, y->layer),
            VN_ORDER(x->kind, y->kind))

void vn_spots_sort(vn_spots *p)
{
	if (p->n)
		qsort(p->place, (size_t)p->n, sizeof *p->place, by_place);
	for (int k = 0; k < p->n_kinds; k++)
		p->kind[k].place = vn_alloc((size_t)p->n, sizeof *p->kind[k].place);
	for (int i = 0; i < p->n; i++) {
		vn_spot_kind *k = &p->kind[p->place[i].kind];
		k->place[k->n_places++] = i;
	}
}

int vn_spots_find(const vn_spots *p, int step, int point, int layer)
{
	const vn_spot key = { .step = step, .point = point, .layer = layer, .kind = -1 };
	int           low = 0, high = p->n;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (by_place(&p->place[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	const vn_spot *x = low < p->n ? &p->place[low] : NULL;
	return x && x->step == step && x->point == point && x->layer == layer ? low : -1;
}

void vn_spots_finish(vn_spots *p)
{
	for (int k = 0; k < p->n_kinds; k++)
		VN_FREE(p->kind[k].index, p->kind[k].place);
	VN_FREE(p->kind, p->place);
	*p = (vn_spots) { .like = NULL };
}

/* ---- a tensor of the dump ------------------------------------------------------------------- */

/* Of equal ones, the first stays in front. */
static void keep_near(vn_tensor_name *x, int place, int layout, float distance)
{
	int at = x->n_near;
	if (at == VN_NEAREST && !(distance < x->near[at - 1].distance))
		return;
	at -= at == VN_NEAREST;
	for (; at > 0 && distance < x->near[at - 1].distance; at--)
		x->near[at] = x->near[at - 1];
	x->near[at] = (vn_near) { place, layout, distance };
	x->n_near += x->n_near < VN_NEAREST;
}

vn_status vn_tensor_name_measure(const vn_spots *p, vn_recording *r, vn_tensor_name *x, vn_error *err)
{
	const vn_entry  *e = vn_recording_entry(r, x->entry);
	char             list[VN_LAYOUTS][VN_LAYOUT_DIMS];
	vn_tensor_sample s;

	if (e->dtype == VN_I32)
		return VN_OK;
	for (int k = 0; k < p->n_kinds; k++) {
		const vn_spot_kind *kind = &p->kind[k];
		if (kind->step != x->step || !kind->n)
			continue;
		const int n = vn_layouts(&e->shape, kind->axis, kind->n_axes, list);
		for (int l = 0; l < n; l++) {
			const vn_status st = vn_kind_sample(kind, r, x->entry, (vn_stack_slice) { list[l], 0, 0 }, &s, err);
			if (st)
				return st;
			for (int i = 0; s.n && i < kind->n_places; i++)
				keep_near(x, kind->place[i], l, (float)vn_tensor_sample_distance(&s, &p->place[kind->place[i]].sample));
		}
	}
	return VN_OK;
}

vn_status vn_spot_in_step(const vn_spots *p, vn_recording *r, int entry, const vn_in_step *in, double *distance,
                          vn_error *err)
{
	const vn_spot   *x = &p->place[in->place];
	const vn_entry  *e = vn_recording_entry(r, entry);
	const vn_step   *cand = vn_recording_step(r, e->step), *mine = vn_recording_step(p->like, in->step);
	const int        there = x->n_entries == 1 ? vn_recording_find(p->like, in->step, x->name) : -1;
	vn_spots         one = { .like = p->like };
	vn_spot          own = { .entry = { there }, .n_entries = 1 };
	vn_spot_kind     k;
	vn_tensor_sample s;
	vn_status        st = VN_OK;

	*distance = 1;
	if (there < 0 || !cand || !mine || mine->tokens != cand->tokens ||
	    !describe_kind(vn_recording_entry(p->like, there), mine, cand, false, &k))
		return VN_OK;
	if ((own.kind = kind_of(&one, &k)) >= 0) {
		one.kind[0].place = NULL;
		if (!(st = sample_place(&one, &own, err)) &&
		    !(st = vn_kind_sample(&one.kind[0], r, entry, (vn_stack_slice) { in->layout, 0, 0 }, &s, err)))
			*distance = vn_tensor_sample_distance(&s, &own.sample);
	}
	vn_spots_finish(&one);
	return st;
}
