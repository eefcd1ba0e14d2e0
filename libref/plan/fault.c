/* fault.c: the table of faults, and injecting one by its id: see fault.h. */
#include "libref/plan/fault_internal.h"

#include "libref/base/glob.h"
#include "libref/base/nearest.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ON(op)         (1u << VN_OP_##op)
#define PLAIN_NORMS    (ON(RMS_NORM) | ON(LAYER_NORM))
#define WEIGHTED_NORMS (PLAIN_NORMS | ON(GATED_NORM))
#define NORMS          (WEIGHTED_NORMS | ON(L2_NORM))
#define ACTIVATIONS    (ON(ACT) | ON(GATED))
#define READERS        (WEIGHTED_NORMS | ACTIVATIONS | ON(LINEAR) | ON(SLICE) | ON(ROPE) | ON(ATTENTION) | ON(ADD))
#define RECORDED       (READERS | ON(EMBED))
#define STORED         ((RECORDED & ~ON(SLICE)) | ON(CAUSAL_CONV) | ON(DELTA_RULE))

/* The operations with weights, but for those that look rows up (embed, positions). */
enum {
	HAS_WEIGHTS = 0
#define OP(NAME, name, check, inputs, weights, ...) | ((inputs) && (weights) ? 1 << VN_OP_##NAME : 0)
#include "libref/plan/op.def"
};

#define ANYWHERE \
	{ \
		VN_NEED_NOTHING \
	}
#define NEEDS(a) \
	{ \
		VN_NEED_##a \
	}
#define NEEDS2(a, b) \
	{ \
		VN_NEED_##a, VN_NEED_##b \
	}
#define NEEDS3(a, b, c) \
	{ \
		VN_NEED_##a, VN_NEED_##b, VN_NEED_##c \
	}

static const vn_fault_row table[] = {
#define FAULT(name, id, title, on, needs, make, constant, x) { id, title, on, needs, vn_make_##make, constant, x },
#include "libref/plan/catalogue.def"
};

static const struct {
	const char *id, *title;
} mistakes[VN_N_MISTAKES] = {
	[VN_NO_MISTAKE] = { "", "" },
#define FAULT(name, id, title, ...)          [VN_MISTAKE_##name] = { id, title },
#define RECORDER_FAULT(name, id, title, ...) [VN_MISTAKE_##name] = { id, title },
#define FAMILY(name, id, title)              [VN_MISTAKE_##name] = { id, title },
#include "libref/plan/catalogue.def"
};

/* The table of mistakes begins with the faults, in this order. */
static_assert(sizeof table / sizeof *table == VN_MISTAKE_M6 - 1, "M6 is the first recorder fault");

int vn_n_faults(void)
{
	return (int)(sizeof table / sizeof *table);
}
const char *vn_fault_id(int fault)
{
	return table[fault].id;
}
const char *vn_fault_means(int fault)
{
	return table[fault].title;
}
char vn_fault_chapter(int fault)
{
	return table[fault].id[0];
}
const char *vn_fault_constant(int fault)
{
	return table[fault].constant ? table[fault].constant : "";
}
const char *vn_mistake_id(vn_mistake m)
{
	return mistakes[m].id;
}
const char *vn_mistake_title(vn_mistake m)
{
	return mistakes[m].title;
}

int vn_mistake_fault(vn_mistake m)
{
	const int fault = (int)m - 1;

	return fault < vn_n_faults() ? fault : -1;
}

vn_mistake vn_fault_mistake(int fault)
{
	return (vn_mistake)(fault + 1);
}

/* "A1" selects A1.missing, its first variant, unless a fault has the name A1;
 * "A" selects nothing. */
static int find_fault(const char *id, size_t n)
{
	int first = -1;

	for (int i = 0; i < vn_n_faults() && n > 0; i++) {
		const char *is = vn_fault_id(i);
		if (strncmp(id, is, n) != 0 || (is[n] != '\0' && is[n] != '.'))
			continue;
		if (is[n] == '\0')
			return i;
		first = first < 0 ? i : first;
	}
	return first;
}

int vn_fault_find(const char *id)
{
	return find_fault(id, strlen(id));
}

static const char *find_unmet(vn_fault_need need, const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	/* clang-format off */
	switch (need) {
#define NEED(name, holds, why) case VN_NEED_##name: return (holds) ? NULL : why;
#include "libref/plan/fault_needs.def"
	case VN_NEED_NOTHING:
		break;
	}
	/* clang-format on */
	return NULL;
}

static const char *why_not(const vn_fault_row *r, const vn_plan *p, int node)
{
	const vn_node *n = &p->node[node];
	const char    *why = r->on >> n->op & 1 ? NULL : "the fault is for another operation";

	for (size_t i = 0; !why && i < sizeof r->needs / sizeof *r->needs; i++)
		why = find_unmet(r->needs[i], r, p, n);
	return why                                                     ? why
	       : r->constant && vn_fault_const(n, r->constant) == r->x ? "the model already computes it so"
	                                                               : NULL;
}

const char *vn_fault_why_not(int fault, const vn_plan *p, int node)
{
	return why_not(&table[fault], p, node);
}

int vn_fault_count(int fault, const vn_plan *p, const char **why)
{
	const char *last = NULL;
	int         n = 0;

	for (int i = 0; i < p->n_nodes; i++) {
		const char *reason = vn_fault_why_not(fault, p, i);
		n += !reason;
		if (reason && (table[fault].on >> p->node[i].op & 1))
			last = reason;
	}
	if (why)
		*why = last ? last : "the model has no such operation";
	return n;
}

/* ---- injecting ------------------------------------------------------------------------ */

vn_status vn_faulty_create(const vn_plan *plan, const vn_tensor *weights, vn_faulty **faulty, vn_error *err)
{
	vn_faulty *f = *faulty = calloc(1, sizeof *f);
	vn_status  st = f ? vn_plan_clone(plan, &f->plan, err) : VN_ERR_NOMEM;

	if (!st && !(f->weight = malloc(((size_t)plan->n_weights + 1) * sizeof *f->weight)))
		st = VN_ERR_NOMEM;
	if (st) {
		vn_faulty_destroy(f);
		*faulty = NULL;
		return vn_fail(err, st, "no memory for a copy of a plan of %d nodes", plan->n_nodes);
	}
	f->unmodified = plan;
	memcpy(f->weight, weights, (size_t)plan->n_weights * sizeof *f->weight);
	return VN_OK;
}

void vn_faulty_destroy(vn_faulty *f)
{
	if (!f)
		return;
	vn_plan_destroy(f->plan);
	for (int i = 0; i < f->n_own; i++)
		free(f->own[i]);
	VN_FREE(f->own, f->weight, f->early, f);
}

void vn_faulty_make_some(vn_faulty *f, const vn_some_rows *rows)
{
	f->some = rows;
}

const vn_plan *vn_faulty_plan(const vn_faulty *f)
{
	return f->plan;
}
const vn_tensor *vn_faulty_weights(const vn_faulty *f)
{
	return f->weight;
}

int vn_faulty_early(const vn_faulty *f, const int **value)
{
	*value = f->early;
	return f->n_early;
}

bool vn_faulty_keeps_nodes(const vn_faulty *f)
{
	bool same = f->plan->n_nodes == f->unmodified->n_nodes && f->plan->n_values == f->unmodified->n_values;

	for (int i = 0; same && i < f->plan->n_nodes; i++) {
		const vn_node *a = &f->plan->node[i], *b = &f->unmodified->node[i];
		same = a->n_in == b->n_in && a->n_out == b->n_out &&
		       memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0 &&
		       memcmp(a->out, b->out, (size_t)a->n_out * sizeof *a->out) == 0;
	}
	return same;
}

/* Whether a node makes a checkpoint that the pattern selects. */
static bool is_selected(const vn_plan *p, int node, const char *glob)
{
	char layer[32];

	if (strchr(p->value[p->node[node].out[0]].name, '~'))
		return false; /* a fault's own */
	snprintf(layer, sizeof layer, "layer%d", p->node[node].layer);
	if (p->node[node].layer >= 0 && vn_glob_match(glob, layer))
		return true;
	for (int v = 0; v < p->n_values; v++)
		if (p->value[v].node == node && vn_glob_match(glob, p->value[v].name))
			return true;
	return false;
}

/* Reports where the fault fits instead, or why it fits nowhere. */
static vn_status fits_nothing(const vn_faulty *f, int fault, const char *what, vn_error *err)
{
	enum { SOME = 6 };
	const vn_plan *p = f->plan;
	const char    *why;
	char           list[SOME * VN_NAME_MAX] = "";
	size_t         at = 0;
	int            n = vn_fault_count(fault, p, &why), k = 0;

	if (n == 0)
		return vn_fail(err, VN_ERR_USAGE, "%s: no operation of this model can have this fault: %s", what, why);
	for (int i = 0; i < p->n_nodes && k < SOME; i++)
		if (!vn_fault_why_not(fault, p, i))
			at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", k++ ? ", " : "",
			                       p->value[p->node[i].out[0]].name);
	return vn_fail(err, VN_ERR_USAGE, "%s: no operation there can have this fault; in this model these can: %s%s", what,
	               list, n > k ? ", ..." : "");
}

static vn_status make_fault(vn_faulty *f, const vn_fault_row *r, int node, vn_error *err)
{
	const vn_status st = r->make(r, f, node, err);

	return st ? st : vn_plan_settle(f->plan, err);
}

vn_status vn_faulty_make(vn_faulty *f, int fault, int node, double number, vn_error *err)
{
	vn_fault_row r = table[fault];

	r.x = number;
	const char *why = why_not(&r, f->plan, node);
	return why ? vn_fail(err, VN_ERR_USAGE, "%s with %g: %s", r.id, number, why) : make_fault(f, &r, node, err);
}

static vn_status no_such_fault(const char *what, size_t n, vn_error *err)
{
	vn_nearest near;
	char       id[VN_NEAREST_MAX];

	snprintf(id, sizeof id, "%.*s", (int)n, what);
	vn_nearest_start(&near, id);
	for (int i = 0; i < vn_n_faults(); i++)
		vn_nearest_try(&near, vn_fault_id(i));
	return vn_fail(err, VN_ERR_USAGE, "%s: no such fault%s; vernier points --faults lists them", what,
	               vn_nearest_hint(&near));
}

vn_status vn_faulty_inject(vn_faulty *f, const char *what, vn_error *err)
{
	const char *at = strchr(what, '@');
	const int   fault = find_fault(what, at ? (size_t)(at - what) : strlen(what));
	vn_status   st = VN_OK;
	int         n = 0;

	if (fault < 0)
		return no_such_fault(what, at ? (size_t)(at - what) : strlen(what), err);
	if (!at)
		return vn_fail(err, VN_ERR_USAGE, "%s: where to inject it is missing: for example %s@layer0.*", what, what);
	if ((st = vn_glob_check(at + 1, err)))
		return st;
	VN_FREED int *target = malloc(((size_t)f->plan->n_nodes + 1) * sizeof *target);
	if (!target)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
	/* Keeps nodes by their output, because making a fault inserts nodes. */
	for (int i = 0; i < f->plan->n_nodes; i++)
		if (!vn_fault_why_not(fault, f->plan, i) && is_selected(f->plan, i, at + 1))
			target[n++] = f->plan->node[i].out[0];
	if (n == 0)
		st = fits_nothing(f, fault, what, err);
	f->kept = 0;
	for (int i = 0; !st && i < n; i++)
		if ((st = make_fault(f, &table[fault], f->plan->value[target[i]].node, err)))
			st = vn_context(err, st, "%s: %s", what, f->plan->value[target[i]].name);
	if (!st && f->kept && f->kept == n)
		st = vn_fail(err, VN_ERR_USAGE, "%s: this fault leaves the weights there unchanged", what);
	return st;
}
