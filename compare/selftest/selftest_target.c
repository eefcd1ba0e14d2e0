/* selftest_target.c: which tensor of a recording a mutation is made in. */
#include "compare/metrics/channels.h"
#include "compare/selftest/selftest_internal.h"
#include "libref/family/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t vn_selftest_columns(const vn_entry *e)
{
	return e->shape.dim[0] > 0 ? vn_shape_count(&e->shape) / e->shape.dim[0] : 0;
}

static void one_sided(vn_recording *of, vn_recording *other, vn_recording *cand, bool *shared)
{
	for (int i = 0, k; i < vn_recording_count(of); i++) {
		const vn_entry *e = vn_recording_entry(of, i);
		if (e->same_as < 0 || (k = vn_recording_find(other, e->step, e->name)) < 0)
			continue;
		const vn_entry *first = vn_recording_entry(of, e->same_as), *there = vn_recording_entry(other, k);
		if (there->same_as >= 0 && strcmp(vn_recording_entry(other, there->same_as)->name, first->name) == 0)
			continue;
		if ((k = vn_recording_find(cand, e->step, e->name)) >= 0)
			shared[k] = true;
		if ((k = vn_recording_find(cand, first->step, first->name)) >= 0)
			shared[k] = true;
	}
}

vn_status vn_mutation_harness_second_names(vn_mutation_harness *c, vn_error *err)
{
	free(c->shared);
	if (!(c->shared = calloc((size_t)vn_recording_count(c->cand) + 1, sizeof *c->shared)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d tensors", vn_recording_count(c->cand));
	one_sided(c->ref, c->cand, c->cand, c->shared);
	one_sided(c->cand, c->ref, c->cand, c->shared);
	return VN_OK;
}

/* Whether the token axis is first and the tensor has the same name on both sides. */
static bool is_plain(const vn_mutation_harness *c, const vn_entry *e, int64_t tokens)
{
	const int i = c->shared[vn_recording_find(c->cand, e->step, e->name)] ? -1
	                                                                      : vn_recording_find(c->ref, e->step, e->name);
	/* In 8 bits or in integers a small change is lost. */
	return e->same_as < 0 && e->dtype < VN_N_ENGINE_DTYPES && e->shape.rank >= 2 &&
	       vn_token_axis(vn_entry_axes(e), e->shape.rank) == 0 && i >= 0 &&
	       strcmp(vn_recording_entry(c->ref, i)->name, e->name) == 0 &&
	       vn_shape_equal(&vn_recording_entry(c->ref, i)->shape, &e->shape) && e->shape.dim[0] >= tokens &&
	       vn_selftest_columns(e) >= 8;
}

static bool are_alike(const vn_entry *a, const vn_entry *b)
{
	return a != b && a->dtype == b->dtype && vn_shape_equal(&a->shape, &b->shape);
}

/* Are these different numbers, not a near copy of slightly earlier ones? */
static bool other_numbers(vn_recording *r, const vn_entry *a, const vn_entry *b)
{
	vn_tensor   x, y;
	vn_measured m;
	const int   i = vn_recording_find(r, a->step, a->name), k = vn_recording_find(r, b->step, b->name);

	return i >= 0 && k >= 0 && !vn_entry_tensor(r, i, &x, NULL) && !vn_entry_tensor(r, k, &y, NULL) &&
	       !vn_measure(&x, &y, vn_entry_axes(a), false, false, 1, &m, NULL) && m.value[VN_M_NMSE] > 0.3;
}

/* ---- steps of one token ------------------------------------------------------------------- */

static bool one_token(const vn_recording *r, int step)
{
	const vn_step *s = vn_recording_step(r, step);
	return s && s->rows == 1;
}

int vn_one_token_steps(const vn_recording *r, const vn_entry *e, int **step)
{
	const vn_step *s;
	const int      all = vn_recording_steps(r, &s);
	int            n = 0;

	*step = malloc(((size_t)all + 1) * sizeof **step);
	for (int i = 0, k; i < all && *step; i++)
		if (s[i].rows == 1 && (k = vn_recording_find(r, s[i].number, e->name)) >= 0 &&
		    vn_recording_entry(r, k)->dtype == e->dtype && vn_shape_equal(&vn_recording_entry(r, k)->shape, &e->shape))
			(*step)[n++] = s[i].number;
	return n;
}

/* Is y (n) a different token as specs/limits.md defines it? A quarter of its first 64 numbers must
 * differ by a 16th from those of each of the `rows` rows x. */
static bool is_new(const double *x, int rows, const double *y, int64_t n)
{
	const int64_t looked_at = n < 64 ? n : 64;
	for (int i = 0; i < rows; i++, x += n) {
		int64_t others = 0;
		for (int64_t k = 0; k < looked_at; k++)
			others += 16.0 * fabs(x[k] - y[k]) > fmax(fabs(x[k]), fabs(y[k]));
		if (4 * others < looked_at)
			return false;
	}
	return true;
}

/* Reads row `at` of e's checkpoint in the reference (e is an entry of it) to x;
 * false: it cannot be read. */
static bool row_at(const vn_mutation_harness *c, int entry, int64_t at, int64_t n, double *x)
{
	vn_tensor t;
	if (entry < 0 || vn_entry_tensor(c->ref, entry, &t, NULL))
		return false;
	vn_to_f64(x, (const char *)t.data + (size_t)(at * n) * vn_dtype_size(t.dtype), t.dtype, (size_t)n);
	vn_recording_release(c->ref, entry);
	return true;
}

/* Whether its channels can be judged: 8 different rows among those that a comparison samples in it
 * (step NULL), or in its `all` steps of one token. */
static bool has_channels(const vn_mutation_harness *c, const vn_entry *e, const int *step, int64_t all)
{
	const int64_t n = vn_selftest_columns(e), taken = all < VN_CHANNEL_ROWS ? all : VN_CHANNEL_ROWS;
	double       *x = taken < VN_CHANNEL_FEWEST ? NULL : malloc((size_t)n * VN_CHANNEL_ROWS * sizeof *x);
	int           rows = 0;

	for (int64_t i = 0; i < taken && x; i++) {
		const int64_t at = vn_channel_row(i, taken, all);
		if (!row_at(c, vn_recording_find(c->ref, step ? step[at] : e->step, e->name), step ? 0 : at, n, x + rows * n))
			break;
		rows += is_new(x, rows, x + rows * n, n);
	}
	free(x);
	return rows >= VN_CHANNEL_FEWEST;
}

static bool steps_have_channels(const vn_mutation_harness *c, const vn_entry *e)
{
	int       *step;
	const int  all = vn_one_token_steps(c->ref, vn_recording_entry(c->ref, vn_recording_find(c->ref, e->step, e->name)),
	                                    &step);
	const bool has = step && all && *step == e->step && has_channels(c, e, step, all);

	free(step);
	return has;
}

/* ---- which ----------------------------------------------------------------------------------- */

static int first_step(const vn_mutation_harness *c)
{
	return vn_recording_count(c->cand) ? vn_recording_entry(c->cand, 0)->step : 0;
}

static int last_step(const vn_mutation_harness *c)
{
	const int n = vn_recording_count(c->cand);
	return n ? vn_recording_entry(c->cand, n - 1)->step : 0;
}

static bool in_call(const vn_mutation_harness *c, vn_selftest_when when, const vn_entry *e)
{
	switch (when) {
	case VN_A_STEP: return e->step > first_step(c) && one_token(c->ref, e->step);
	case VN_LAST_STEP: return e->step > first_step(c) && e->step == last_step(c) && one_token(c->ref, e->step);
	case VN_EVERY_STEP: return one_token(c->ref, e->step);
	default: return e->step == first_step(c);
	}
}

/* Whether the run stores or accumulates in less than f16. */
static bool is_coarse(const vn_mutation_harness *c, const vn_entry *e)
{
	const char *precision = vn_facts_get(vn_recording_run(c->cand), "precision");
	vn_policy   p;
	return e->dtype == VN_BF16 || !precision ||
	       (vn_policy_from_word(precision, &p) && (p.storage == VN_BF16 || p.sums == VN_F16));
}

static bool fits_mutation(const vn_mutation_harness *c, const vn_mutation *m, const vn_entry *e)
{
	const int tokens = m->when ? 1 : 3;
	if (m->needs == VN_NEEDS_STEPS ? e->step <= first_step(c) || (m->when && !in_call(c, m->when, e))
	                               : !in_call(c, m->when, e))
		return false;
	switch (m->needs) {
	case VN_NEEDS_FINER:
		if (is_coarse(c, e))
			return false;
		/* fall through */
	case VN_NEEDS_TENSOR:
	case VN_NEEDS_PAIR:
	case VN_NEEDS_LAYERS:
		return e->layer >= 0 && is_plain(c, e, tokens) && e->shape.dim[0] != vn_selftest_columns(e) &&
		       (m->when != VN_EVERY_STEP || (vn_axes_find(vn_entry_axes(e), "key") < 0 && steps_have_channels(c, e)));
	case VN_NEEDS_HEADS:
		return e->layer >= 0 && is_plain(c, e, tokens) && e->shape.rank == 3 && e->shape.dim[1] >= 2 &&
		       e->shape.dim[2] >= 2 && e->shape.dim[1] != e->shape.dim[2] && e->shape.dim[0] != e->shape.dim[1];
	case VN_NEEDS_SCORES: return strcmp(e->name, "logits") == 0 && is_plain(c, e, tokens);
	case VN_NEEDS_STEPS: return e->layer >= 0 && is_plain(c, e, 1);
	case VN_NEEDS_NAMES: return e->same_as >= 0 && vn_recording_find(c->ref, e->step, e->name) >= 0;
	default: return false;
	}
}

static bool is_target(const vn_mutation_harness *c, const vn_mutation *m, const vn_entry *e)
{
	return fits_mutation(c, m, e) && (!m->eight || has_channels(c, e, NULL, e->shape.dim[0]));
}

/* Does it come later in the order of either side? An engine may omit the order (sequence.h). */
static bool is_later(const vn_mutation_harness *c, const vn_entry *e, const vn_entry *o)
{
	return vn_recording_find(c->cand, o->step, o->name) > vn_recording_find(c->cand, e->step, e->name) &&
	       vn_recording_find(c->ref, o->step, o->name) > vn_recording_find(c->ref, e->step, e->name);
}

static bool is_other(const vn_mutation_harness *c, const vn_mutation *m, const vn_entry *e, const vn_entry *o)
{
	const int tokens = m->when ? 1 : 3;
	switch (m->needs) {
	case VN_NEEDS_PAIR:
		return are_alike(e, o) && is_plain(c, o, tokens) && o->step == e->step && is_later(c, e, o) &&
		       o->layer == e->layer && other_numbers(c->cand, e, o);
	case VN_NEEDS_LAYERS:
		return are_alike(e, o) && is_plain(c, o, tokens) && o->step == e->step && is_later(c, e, o) && o->layer >= 0 &&
		       o->layer != e->layer && strcmp(o->point, e->point) == 0 && *o->point && other_numbers(c->cand, e, o);
	case VN_NEEDS_STEPS:
		return are_alike(e, o) && o->step == e->step - 1 && strcmp(o->name, e->name) == 0 &&
		       other_numbers(c->cand, e, o);
	case VN_NEEDS_NAMES:
		return are_alike(e, o) && is_plain(c, o, 1) && o->step == e->step &&
		       o != vn_recording_entry(c->cand, e->same_as) && other_numbers(c->cand, e, o);
	default: return false;
	}
}

static bool has_other(vn_needs needs)
{
	return needs == VN_NEEDS_PAIR || needs == VN_NEEDS_LAYERS || needs == VN_NEEDS_STEPS || needs == VN_NEEDS_NAMES;
}

/* The error that the format alone causes; INFINITY: unknown. */
static double floor_of(vn_mutation_harness *c, const vn_entry *e)
{
	vn_tensor   x, y;
	vn_measured m;
	const int   i = vn_recording_find(c->ref, e->step, e->name), k = vn_recording_find(c->floor, e->step, e->name);

	if (i < 0 || k < 0 || !vn_shape_equal(&vn_recording_entry(c->floor, k)->shape, &e->shape) ||
	    vn_entry_tensor(c->ref, i, &x, NULL) || vn_entry_tensor(c->floor, k, &y, NULL) ||
	    vn_measure(&x, &y, vn_entry_axes(e), false, false, 1, &m, NULL))
		return (double)INFINITY;
	return m.value[VN_M_NMSE] > 0.0 ? m.value[VN_M_NMSE] : (double)INFINITY;
}

/* Chooses the suitable tensor with the lowest floor. */
static bool choose_quiet(vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target)
{
	const int n = vn_recording_count(c->cand);
	double    least = (double)INFINITY;

	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(c->cand, i);
		const double    f = is_target(c, m, e) ? floor_of(c, e) : (double)INFINITY;
		if (f < least) {
			least = f;
			*target = e;
		}
	}
	return *target != NULL;
}

/* Chooses the suitable tensor in the middle of the run. */
static bool choose_target(const vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target,
                          const vn_entry **other)
{
	const int  n = vn_recording_count(c->cand);
	const bool two = has_other(m->needs);
	int        found = 0;

	*target = *other = NULL;
	for (int pass = 0, wanted = 0; pass < 2; pass++, wanted = found / 2, found = 0)
		for (int i = 0; i < n; i++) {
			const vn_entry *e = vn_recording_entry(c->cand, i), *o = NULL;
			if (!is_target(c, m, e))
				continue;
			for (int k = 0; two && k < n && !o; k++)
				if (is_other(c, m, e, vn_recording_entry(c->cand, k)))
					o = vn_recording_entry(c->cand, k);
			if (two && !o)
				continue;
			if (pass == 1 && found == wanted) {
				*target = e;
				*other = o;
				return true;
			}
			found++;
		}
	return false;
}

static const char *const lacks[VN_N_NEEDS] = {
	[VN_NEEDS_TENSOR] = "no tensor of three tokens by eight numbers inside a layer",
	[VN_NEEDS_FINER] = "no tensor in a finer format than bf16",
	[VN_NEEDS_HEADS] = "no tensor of three tokens with heads",
	[VN_NEEDS_SCORES] = "no logits of three tokens",
	[VN_NEEDS_PAIR] = "no two such tensors of equal shape and different numbers in one layer",
	[VN_NEEDS_LAYERS] = "no such tensor in two layers",
	[VN_NEEDS_STEPS] = "no two steps with equal numbers of tokens",
	[VN_NEEDS_NAMES] = "no second names",
	[VN_NEEDS_WEIGHTS] = "no table of weights",
	[VN_NEEDS_PLAN] = "no plan",
	[VN_NEEDS_CONFIG] = "no config",
	[VN_NEEDS_FLOOR] = "no floor",
	[VN_NEEDS_EARLIER] = "no recording of other tokens",
	[VN_NEEDS_UNRELATED_RUN] = "no recording of other weights",
};

static const char *lacking_reason(const vn_mutation_harness *c, const vn_mutation *m)
{
	if (m->when == VN_EVERY_STEP)
		return "no tensor inside a layer with 8 different tokens in steps of one";
	for (int i = 0; i < vn_recording_count(c->cand) && m->when; i++)
		if (in_call(c, m->when, vn_recording_entry(c->cand, i)))
			return m->needs == VN_NEEDS_HEADS    ? "no tensor with heads in such a step"
			       : m->needs == VN_NEEDS_LAYERS ? "no tensor with different numbers in two layers of such a step"
			       : m->needs == VN_NEEDS_STEPS  ? "the step before has the same numbers"
			                                     : "no tensor of eight numbers inside a layer in such a step";
	for (int i = 0; i < vn_recording_count(c->cand) && m->eight; i++)
		if (fits_mutation(c, m, vn_recording_entry(c->cand, i)))
			return "fewer than 8 different tokens";
	return m->when == VN_LAST_STEP ? "the last step is not a later step of one token"
	       : m->when               ? "no later step of one token"
	                               : lacks[m->needs];
}

/* Why a mutation of what a tensor claims about itself cannot be tried; NULL: it can. */
static const char *unsaid_reason(const vn_mutation_harness *c, vn_claim claim, const vn_entry *e, const vn_entry *o)
{
	const int       i = claim == VN_CLAIM_NONE ? -1 : vn_recording_find(c->ref, e->step, e->name);
	const vn_entry *r = i < 0 ? e : vn_recording_entry(c->ref, i);
	switch (claim) {
	case VN_CLAIM_BASIS: return *e->basis && *r->basis ? NULL : "no basis recorded";
	case VN_CLAIM_DIGEST:
		return *vn_entry_digest(e).hex && *vn_entry_digest(r).hex ? NULL
		                                                          : "no digest recorded, so no change can be detected";
	case VN_CLAIM_ORDER: return e->order >= 0 && o && o->order >= 0 ? NULL : "no order recorded";
	case VN_CLAIM_STATISTICS: return e->stats ? NULL : "no statistics recorded";
	default: return NULL;
	}
}

const char *vn_mutation_harness_why_not(vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target,
                                        const vn_entry **other)
{
	const vn_weight_row *rows;
	const bool           planned = vn_recording_plan(c->cand) && vn_recording_plan(c->ref);
	bool                 good = true;

	*target = *other = NULL;
	switch (m->needs) {
	case VN_NEEDS_NOTHING: break;
	case VN_NEEDS_WEIGHTS:
		good = vn_recording_weights(c->cand, &rows) > 0 && vn_recording_weights(c->ref, &rows) > 0;
		break;
	case VN_NEEDS_PLAN: good = planned; break;
	case VN_NEEDS_CONFIG: good = vn_recording_config(c->cand) && vn_recording_config(c->ref); break;
	case VN_NEEDS_FLOOR: good = c->floor != NULL; break;
	case VN_NEEDS_EARLIER: good = c->h->earlier != NULL; break;
	case VN_NEEDS_UNRELATED_RUN: good = c->h->unrelated_run != NULL; break;
	default: good = m->fine >= VN_FINE && c->floor ? choose_quiet(c, m, target) : choose_target(c, m, target, other);
	}
	if (!good && m->fine >= VN_FINE && c->floor && choose_target(c, m, target, other))
		return "no such tensor in the floor, or the floor has the reference's own numbers";
	if (!good)
		return lacking_reason(c, m);
	if (m->plan && !planned)
		return lacks[VN_NEEDS_PLAN];
	if ((m->unit == VN_UNIT_FLOOR && !c->floor) || (m->unit == VN_UNIT_MODEL && !c->h->model))
		return m->unit == VN_UNIT_FLOOR ? lacks[VN_NEEDS_FLOOR] : "no model (--model)";
	const char *why = *target ? unsaid_reason(c, m->claim, *target, *other) : NULL;
	if (why)
		return why;
	const bool coarse = *target && is_coarse(c, *target), none = !c->floor || m->unit == VN_UNIT_NONE;
	const bool recurrent = vn_family_is_recurrent(vn_recording_family(c->cand));
	const bool wider = m->fine == VN_FINEST || (m->fine == VN_FINER && (coarse || recurrent)) ||
	                   (m->fine == VN_FAIR && coarse && recurrent);
	if (wider && none && !c->h->limits && *target && vn_dtype_size((*target)->dtype) == 2)
		return "no floor, and the limits without a floor are wider than this change (give --floor)";
	return NULL;
}
