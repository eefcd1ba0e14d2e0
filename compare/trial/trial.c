/* trial.c: see trial.h: compares and names trials. trial_apply.c computes their
 * results. */
#include "compare/trial/trial.h"
#include "compare/replayed/variants.h"
#include "compare/trial/search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the catalogue id ------------------------------------------------------------------------ */

static const struct {
	vn_mistake  id;
	int         digits;
	const char *constant;
} findings[VN_N_FINDINGS] = {
#define FINDING(name, mistake, digits, with, constant, words) [VN_FINDING_##name] = { mistake, digits, constant },
#define SAID(name, mistake, digits, say)                      [VN_FINDING_##name] = { mistake, digits, NULL },
#include "compare/trial/findings.def"
};

/* The catalogue id of moved cache slots: whole tokens, or only keys or values. */
static vn_mistake slots_id(bool alone, bool after)
{
	if (alone)
		return after ? VN_MISTAKE_C3_AFTER : VN_MISTAKE_C3;
	return after ? VN_MISTAKE_C1_AFTER : VN_MISTAKE_C1_BEFORE;
}

static vn_mistake narrow_id(const vn_applied_format *e)
{
	const bool half = e->format == VN_FORMAT_F16;

	return e->whole && e->router ? (half ? VN_MISTAKE_E17_F16 : VN_MISTAKE_E17_BF16)
	       : !e->whole && half   ? VN_MISTAKE_P1
	                             : VN_NO_MISTAKE;
}

vn_mistake vn_trial_mistake(const vn_trial *h)
{
	if (h->finding == VN_FINDING_FAULT)
		return h->fault[1] ? VN_NO_MISTAKE : vn_fault_mistake(h->fault[0] - 1);
	if (h->applied.kind == VN_BY_NUMBER)
		return vn_fault_mistake(h->applied.number.row);
	if (h->finding == VN_FINDING_SLOTS_MOVED)
		return slots_id(vn_trial_constant(h, "cache_of") > 0, vn_trial_constant(h, "cache_form") == VN_CACHE_PAST);
	if (h->finding == VN_FINDING_NEW_NOT_CACHED)
		return vn_trial_constant(h, "cache_form") == VN_CACHE_LATE ? VN_MISTAKE_C5 : VN_MISTAKE_C5_BEFORE;
	if (h->finding == VN_FINDING_NEW_SLOTS_MOVED)
		return h->applied.slots.of || abs(h->applied.slots.by) == 1
		           ? slots_id(h->applied.slots.of > 0, h->applied.slots.by > 0)
		       : h->applied.slots.by > 0 ? VN_MISTAKE_C1_LATE
		                                 : VN_MISTAKE_C1_EARLY;
	if (h->finding == VN_FINDING_STRETCH && !h->paired && vn_trial_constant(h, "turn") == -1)
		return VN_MISTAKE_R8;
	if (h->finding == VN_FINDING_PROBS_ROUNDED)
		return h->applied.attend.probs == VN_FORMAT_F16 ? VN_MISTAKE_A13_F16 : VN_MISTAKE_A13_BF16;
	if (h->finding == VN_FINDING_VARIANT)
		return vn_variant_mistake(h->applied.variant.row);
	if (h->finding == VN_FINDING_NARROW)
		return narrow_id(&h->applied.narrow);
	return h->fault[0] || h->paired ? VN_NO_MISTAKE : findings[h->finding].id;
}

const char *vn_trial_id(const vn_trial *h, char id[VN_ID])
{
	const vn_mistake one = vn_trial_mistake(h);

	if (one || h->finding == VN_FINDING_NARROW || h->finding == VN_FINDING_VARIANT)
		snprintf(id, VN_ID, "%s", vn_mistake_id(one));
	else if (h->finding == VN_FINDING_FAULT)
		snprintf(id, VN_ID, "%s+%s", vn_fault_id(h->fault[0] - 1), vn_fault_id(h->fault[1] - 1));
	else if (h->fault[0])
		snprintf(id, VN_ID, "%s+%s", vn_mistake_id(findings[h->finding].id), vn_fault_id(h->fault[0] - 1));
	else
		snprintf(id, VN_ID, "%s%s%s", h->paired ? vn_mistake_id(VN_MISTAKE_R1) : "", h->paired ? "+" : "",
		         vn_mistake_id(findings[h->finding].id));
	return id;
}

int vn_trial_row(const vn_trial *h)
{
	return vn_mistake_fault(vn_trial_mistake(h));
}

bool vn_trial_made_at(const vn_trial *h, int node)
{
	return h->places ? node < VN_TRIAL_NODES && (h->at[node / 64] >> (node % 64) & 1) : node == h->node;
}

bool vn_trial_is_pair(const vn_trial *h)
{
	return h->applied.kind == VN_BY_CATALOGUE && h->fault[1];
}

bool vn_trial_is_fitted(const vn_trial *h)
{
	return h->applied.kind > VN_BY_CATALOGUE && h->applied.kind < VN_BY_RESULT;
}

/* ---- sameness -------------------------------------------------------------------------------- */

static bool same_number(double a, double b, int digits)
{
	return vn_in_digits(a, digits) == vn_in_digits(b, digits);
}

static bool same_constants(const vn_trial *a, const vn_trial *b, int digits)
{
	const vn_applied *x = &a->applied, *y = &b->applied;
	bool              same = x->constants.places == y->constants.places && x->constants.n == y->constants.n;

	for (int i = 0; same && i < x->constants.n; i++)
		same = strcmp(x->constants.set[i].name, y->constants.set[i].name) == 0 &&
		       (a->last || same_number(x->constants.set[i].value, y->constants.set[i].value, digits));
	return same;
}

static bool same_matrix(const vn_applied_matrix *a, const vn_applied_matrix *b)
{
	return a->kind == b->kind && a->fused == b->fused && a->n == b->n &&
	       memcmp(a->from, b->from, sizeof a->from) == 0 && a->factor == b->factor && a->format == b->format &&
	       a->of == b->of && a->scaled == b->scaled && a->stored == b->stored;
}

static bool same_rotation(const vn_other_rotation *a, const vn_other_rotation *b)
{
	const vn_position_map *m = &a->map, *n = &b->map;

	return a->positions == b->positions && a->frequencies == b->frequencies && a->angles == b->angles &&
	       a->table == b->table && a->call == b->call && a->moved == b->moved && a->exchanged == b->exchanged &&
	       a->twice == b->twice && a->words == b->words && a->by_ids == b->by_ids && m->first == n->first &&
	       m->last == n->last && m->open == n->open && m->whole == n->whole && m->times == n->times &&
	       m->plus == n->plus;
}

static bool same_change(const vn_trial *a, const vn_trial *b)
{
	const vn_applied *x = &a->applied, *y = &b->applied;
	const int         digits = findings[a->finding].digits;

	if (x->kind != y->kind || x->later != y->later)
		return false;
	switch (x->kind) {
	case VN_BY_CATALOGUE: return true;
	case VN_BY_NUMBER: return x->number.row == y->number.row && same_number(x->number.value, y->number.value, digits);
	case VN_BY_CONSTANTS: return same_constants(a, b, digits);
	case VN_BY_ROWS: return a->last || x->rows == y->rows;
	case VN_BY_MATRIX: return same_matrix(&x->matrix, &y->matrix);
	case VN_BY_ROTATION: return same_rotation(&x->rotate, &y->rotate);
	case VN_BY_ATTEND:
		return x->attend.kind == y->attend.kind && x->attend.call == y->attend.call &&
		       x->attend.scores == y->attend.scores && x->attend.exps == y->attend.exps &&
		       x->attend.sum == y->attend.sum && x->attend.probs == y->attend.probs &&
		       x->attend.inputs == y->attend.inputs && x->attend.cache == y->attend.cache &&
		       x->attend.scaled == y->attend.scaled && x->attend.unseen == y->attend.unseen &&
		       same_number(x->attend.number, y->attend.number, digits);
	case VN_BY_ACTIVATION: return x->activation == y->activation;
	case VN_BY_NARROW: return x->narrow.format == y->narrow.format && x->narrow.whole == y->narrow.whole;
	case VN_BY_READS:
		return memcmp(x->reads.in, y->reads.in, sizeof x->reads.in) == 0 && x->reads.weights == y->reads.weights &&
		       x->reads.matrix == y->reads.matrix;
	case VN_BY_BLOCKS:
		return x->blocks.block == y->blocks.block && x->blocks.of == y->blocks.of && x->blocks.n == y->blocks.n &&
		       memcmp(x->blocks.from, y->blocks.from, (size_t)x->blocks.n * sizeof *x->blocks.from) == 0;
	case VN_BY_SLOTS:
		return x->slots.of == y->slots.of && x->slots.by == y->slots.by && x->slots.newest == y->slots.newest;
	case VN_BY_STATE:
		return x->state.kind == y->state.kind && x->state.calls == y->state.calls &&
		       x->state.format == y->state.format && same_number(x->state.factor, y->state.factor, digits);
	case VN_BY_STEP: return x->step.due == y->step.due;
	case VN_BY_TOKENS: return x->tokens == y->tokens;
	case VN_BY_RESULT:
		return same_number(x->result.number, y->result.number, digits) && x->result.factor == y->result.factor &&
		       x->result.clamp == y->result.clamp && x->result.n == y->result.n && x->result.more == y->result.more &&
		       memcmp(x->result.list, y->result.list, (size_t)x->result.n * sizeof *x->result.list) == 0;
	case VN_BY_CACHED:
		return x->cached.first == y->cached.first && x->cached.n == y->cached.n && x->cached.holds == y->cached.holds &&
		       x->cached.others == y->cached.others;
	case VN_BY_CHANGED:
		return x->changed.kind == y->changed.kind && x->changed.slots == y->changed.slots &&
		       x->changed.of == y->changed.of && x->changed.first == y->changed.first && x->changed.n == y->changed.n &&
		       x->changed.format == y->changed.format && same_number(x->changed.number, y->changed.number, digits) &&
		       same_number(x->changed.values, y->changed.values, digits);
	case VN_BY_REPLAY:
		return x->variant.row == y->variant.row && strcmp(x->variant.is, y->variant.is) == 0 &&
		       strcmp(x->variant.due, y->variant.due) == 0;
	case VN_BY_ONE_CACHED:
		return x->one_cached.slot == y->one_cached.slot && x->one_cached.of == y->one_cached.of &&
		       x->one_cached.holds == y->one_cached.holds && x->one_cached.others == y->one_cached.others;
	}
	return false;
}

static bool same_part(const vn_trial *a, const vn_trial *b)
{
	return a->heads == b->heads && memcmp(a->part, b->part, sizeof a->part) == 0;
}

bool vn_trial_same(const vn_trial *a, const vn_trial *b)
{
	return a->finding == b->finding && a->paired == b->paired && a->fault[0] == b->fault[0] &&
	       a->fault[1] == b->fault[1] && a->first == b->first && a->last == b->last && a->first_also == b->first_also &&
	       a->last_also == b->last_also && same_part(a, b) && same_change(a, b);
}

bool vn_trial_same_mistake(const vn_trial *a, const vn_trial *b)
{
	char id[VN_ID], other[VN_ID];

	if (a->node != b->node || (a->finding == VN_FINDING_FAULT) == (b->finding == VN_FINDING_FAULT) || !same_part(a, b))
		return false;
	vn_trial_id(a, id);
	return *id && strcmp(id, vn_trial_id(b, other)) == 0;
}

bool vn_trial_same_mechanism(const vn_trial *a, const vn_trial *b)
{
	char id[VN_ID], other[VN_ID];

	vn_trial_id(a, id);
	vn_trial_id(b, other);
	if (!*id || !*other)
		return a->finding == b->finding;
	const size_t n = strcspn(id, "."); /* a variant follows the dot: "R2.1e4" */
	return n == strcspn(other, ".") && strncmp(id, other, n) == 0;
}

bool vn_trial_same_place(const vn_trial *a, const vn_trial *b)
{
	const bool fitted = vn_trial_is_fitted(a);
	char       id[VN_ID], other[VN_ID];

	if (a->node != b->node || a->places != b->places || (a->places == 2 && a->other != b->other) ||
	    fitted != vn_trial_is_fitted(b) || !same_part(a, b))
		return false;
	return fitted ? vn_trial_same(a, b) : strcmp(vn_trial_id(a, id), vn_trial_id(b, other)) == 0;
}

/* ---- its numbers ----------------------------------------------------------------------------- */

void vn_trial_constant_put(vn_trial *h, const char *name, double value)
{
	int i = 0;

	h->applied.kind = VN_BY_CONSTANTS;
	while (i < h->applied.constants.n && strcmp(h->applied.constants.set[i].name, name) != 0)
		i++;
	assert(i < VN_CONSTANTS_MOST);
	h->applied.constants.set[i].name = name;
	h->applied.constants.set[i].value = value;
	h->applied.constants.n = i == h->applied.constants.n ? i + 1 : h->applied.constants.n;
}

double vn_trial_constant(const vn_trial *h, const char *name)
{
	for (int i = 0; h->applied.kind == VN_BY_CONSTANTS && i < h->applied.constants.n; i++)
		if (strcmp(h->applied.constants.set[i].name, name) == 0)
			return h->applied.constants.set[i].value;
	return (double)NAN;
}

void vn_trial_number_put(vn_trial *h, double number)
{
	if (h->applied.kind == VN_BY_NUMBER)
		h->applied.number.value = number;
	else if (h->applied.kind == VN_BY_CONSTANTS)
		h->applied.constants.set[h->applied.constants.n - 1].value = number;
	else if (h->applied.kind == VN_BY_ROWS)
		h->applied.rows = (int)number;
	else if (h->applied.kind == VN_BY_ATTEND)
		h->applied.attend.number = number;
	else if (h->applied.kind == VN_BY_STATE)
		h->applied.state.factor = number;
}

const char *vn_finding_constant(vn_finding f)
{
	return findings[f].constant;
}

double vn_trial_number(const vn_trial *h)
{
	const char *constant = vn_finding_constant(h->finding);

	if (constant)
		return vn_trial_constant(h, constant);
	switch (h->applied.kind) {
	case VN_BY_NUMBER: return h->applied.number.value;
	case VN_BY_ROWS: return h->applied.rows;
	case VN_BY_MATRIX: return h->applied.matrix.factor;
	case VN_BY_ATTEND: return h->applied.attend.number;
	case VN_BY_CHANGED: return h->applied.changed.number;
	case VN_BY_RESULT: return h->applied.result.number;
	default: assert(0); /* findings.def gives a number to a finding whose change has none */
	}
	return (double)NAN;
}
