/* name_map.c: decides which rule applies to which tensor, and applies it; see name_map.h. */
#include "capture/names/name_map_internal.h"

#include "capture/recording/derive.h"
#include "capture/view/dims.h"
#include "capture/recording/numbers.h"
#include "capture/view/residual.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/system.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* When the caller only collects mismatches, they are no error. */
static vn_status allow_collected(const vn_name_map_job *j, vn_status st)
{
	if (st != VN_ERR_MISMATCH || !j->use->trouble)
		return st;
	j->use->trouble(j->use->context, j->err->text);
	return VN_OK;
}

/* ---- which rule ------------------------------------------------------------------------- */

/* The family of either recording: an engine of its own names its class ("TransformerDecoder"). */
static bool in_family(const vn_name_map_job *j, const char *family)
{
	const vn_recording *like = j->use->like->recording;
	const char         *mine = vn_recording_family(j->r), *theirs = like ? vn_recording_family(like) : NULL;
	return !family || (mine && vn_glob_match(family, mine)) || (theirs && vn_glob_match(family, theirs));
}

static bool has_all(const vn_name_map_job *j, const vn_name_map_rule *k, const vn_entry *e)
{
	char name[VN_NAME_MAX];
	for (int i = 0; i < k->n_plus; i++)
		if (!vn_name_map_term(k, i, e->name, name, sizeof name) || vn_recording_find(j->r, e->step, name) < 0)
			return false;
	return true;
}

/* Whether {n-1}, if the rule has it, is at least 0. */
static bool in_range(const vn_name_map_rule *k, int n)
{
	bool is = vn_name_map_counts_from(k->to, n) && vn_name_map_counts_from(k->again, n) &&
	          vn_name_map_counts_from(k->either[0], n) && vn_name_map_counts_from(k->either[1], n);
	for (int i = 0; i < k->n_parts && is; i++)
		is = vn_name_map_counts_from(k->parts[i], n);
	return is;
}

/* Whether the checkpoint of a rule with in_model is there to be compared. */
static bool is_in_model(vn_name_map_job *j, int rule, int n, int step)
{
	const vn_name_map_rule *k = &j->m->rule[rule];
	const vn_like          *like = j->use->like;
	char                    to[VN_NAME_MAX];
	if (k->in_model && !like->plan && !like->recording)
		j->unknown = rule + 1;
	if (!k->in_model || !vn_name_map_name(k->to, n, to, sizeof to))
		return true;
	return (like->plan && vn_plan_find(like->plan, to) >= 0) ||
	       (like->recording && vn_recording_find(like->recording, step, to) >= 0);
}

static void choose_rules(vn_name_map_job *j)
{
	const int count = vn_recording_count(j->r);
	char      name[VN_NAME_MAX];
	for (int i = 0; i < count; i++) {
		const vn_entry *e = vn_recording_entry(j->r, i);
		for (int k = 0; k < j->m->n && j->rule[i] == VN_MAP_LEFT; k++) {
			const vn_name_map_rule *rule = &j->m->rule[k];
			if (vn_name_map_rule_match(rule, e->name, &j->n[i]) && (!rule->op || vn_glob_match(rule->op, e->op)) &&
			    in_family(j, rule->family) && in_range(rule, j->n[i]) &&
			    (rule->each || is_in_model(j, k, j->n[i], e->step)) && has_all(j, rule, e))
				j->rule[i] = k;
		}
	}
	for (int i = 0; i < count; i++)
		for (int k = 0; j->rule[i] >= 0 && k < j->m->rule[j->rule[i]].n_plus; k++)
			if (vn_name_map_term(&j->m->rule[j->rule[i]], k, vn_recording_entry(j->r, i)->name, name, sizeof name)) {
				const int other = vn_recording_find(j->r, vn_recording_entry(j->r, i)->step, name);
				if (other >= 0 && other != i)
					j->rule[other] = VN_MAP_GONE; /* its numbers are included in the sum */
			}
}

/* ---- either one or the other ------------------------------------------------------------- */

/* Returns the tensor that becomes this checkpoint by a rule with one result that is not a
 * fallback. */
static int source_of(const vn_name_map_job *j, int step, const char *name)
{
	char to[VN_NAME_MAX];
	for (int i = 0; i < vn_recording_count(j->r); i++) {
		const int k = j->rule[i];
		if (k == VN_MAP_GONE || vn_recording_entry(j->r, i)->step != step || (k >= 0 && j->m->rule[k].fallback))
			continue;
		if (k == VN_MAP_LEFT ? strcmp(vn_recording_entry(j->r, i)->name, name) == 0
		                     : j->m->rule[k].to && vn_name_map_name(j->m->rule[k].to, j->n[i], to, sizeof to) &&
		                           strcmp(to, name) == 0)
			return i;
	}
	return -1;
}

static void say_choice(const vn_name_map_job *j, const vn_entry *e, const char *name, const char *why)
{
	char text[5 * VN_NAME_MAX];
	snprintf(text, sizeof text, "%s is taken as %s: %s", e->name, name, why);
	vn_text_clean(text, sizeof text);
	if (j->use->say)
		j->use->say(j->use->context, text);
}

/* The number of elements of that checkpoint; -1: unknown. */
static int64_t numbers_of(const vn_name_map_job *j, const char *name, int step)
{
	const vn_looks w = vn_like_of(j->use->like, name, vn_recording_step(j->r, step));
	return w.shape.rank ? vn_shape_count(&w.shape) : -1;
}

/* Decides between two rules: the result named `first` is what is added to the residual stream. */
static vn_status by_stream(vn_name_map_job *j, int k, int i, const char *first, char *why, size_t room)
{
	const int       step = vn_recording_entry(j->r, i)->step;
	vn_residual_sum s;
	if (!vn_residual_sum_of(j->use->like->plan, first, &s))
		return VN_OK;
	int which = 0, before = source_of(j, step, s.before[0]);
	if (before < 0)
		before = source_of(j, step, s.before[which = 1]);
	const vn_term   term[] = { { j->r, source_of(j, step, s.after) }, { j->r, before }, { j->r, i } };
	double          left;
	const vn_status st = vn_residual_left(term, 3, &left, j->err);
	if (st || left < 0)
		return st;
	j->chosen[k] = !vn_residual_closes(left);
	snprintf(why, room, "%s %s %s + it", s.after, j->chosen[k] ? "is not" : "is", s.before[which]);
	return VN_OK;
}

/* Decides by the first layer where the choice shows; the other layers come from the same engine. */
static vn_status decide_name(vn_name_map_job *j, int k)
{
	char name[2][VN_NAME_MAX], why[3 * VN_NAME_MAX];
	int  last = -1;
	for (int i = 0; i < vn_recording_count(j->r) && j->chosen[k] < 0; i++) {
		const vn_entry *e = vn_recording_entry(j->r, i);
		if (j->rule[i] != k)
			continue;
		last = i;
		for (int side = 0; side < 2; side++)
			vn_name_map_name(j->m->rule[k].either[side], j->n[i], name[side], sizeof name[side]);
		for (int side = 0; side < 2 && j->chosen[k] < 0; side++) {
			const int64_t n = numbers_of(j, name[side], e->step);
			if (source_of(j, e->step, name[side]) >= 0) {
				j->chosen[k] = !side;
				snprintf(why, sizeof why, "%s is another tensor", name[side]);
			} else if (j->use->like->ranks == 1 && n >= 0 && n != vn_shape_count(&e->shape) &&
			           numbers_of(j, name[!side], e->step) == vn_shape_count(&e->shape)) {
				j->chosen[k] = !side;
				snprintf(why, sizeof why, "it has the numbers of that tensor, not those of %s", name[side]);
			}
		}
		const vn_status st = j->chosen[k] < 0 ? by_stream(j, k, i, name[0], why, sizeof why) : VN_OK;
		if (st)
			return st;
		if (j->chosen[k] >= 0)
			say_choice(j, e, name[j->chosen[k]], why);
	}
	if (last >= 0 && j->chosen[k] < 0)
		return vn_name_map_fail(
			j, k,
			"%s may be %s or %s: to tell them apart, one layer must have its residual stream recorded before and after "
			"it",
			vn_recording_entry(j->r, last)->name, name[0], name[1]);
	return VN_OK;
}

/* ---- all of them ------------------------------------------------------------------------- */

static vn_status add_outcome(vn_name_map_job *j, int entry, int n, int part, const char *pattern)
{
	j->out = vn_alloc_grown(j->out, (size_t)j->n_out, sizeof *j->out);
	vn_name_map_outcome *o = &j->out[j->n_out++];
	*o = (vn_name_map_outcome) { .entry = entry, .rule = j->rule[entry], .n = n, .part = part };
	if (!vn_name_map_name(pattern, n, o->name, sizeof o->name))
		return vn_name_map_fail(j, o->rule, "the new name of %s has more than %d bytes",
		                        vn_recording_entry(j->r, entry)->name, VN_NAME_MAX - 1);
	return VN_OK;
}

/* Number of tensors along the axis of `each`. */
static vn_status count_indices(vn_name_map_job *j, int entry, int *n)
{
	enum { MOST_EACH = 4096 };
	const vn_name_map_rule *k = &j->m->rule[j->rule[entry]];
	const vn_entry         *e = vn_recording_entry(j->r, entry);
	vn_dims                 d;
	const char             *why;
	int64_t                 size = -1;
	if (vn_dims_parse(k->axes, &d, &why)) {
		/* vn_dims_fit may drop a missing first axis. */
		const int axis = d.atom[vn_dims_find(&d, k->each)].axis - (d.rank - e->shape.rank);
		size = axis >= 0 && axis < e->shape.rank ? e->shape.dim[axis] : -1;
	}
	if (size < 0)
		return vn_name_map_fail(j, j->rule[entry], "the shape of %s is not '%s'", e->name, k->axes);
	if (size > MOST_EACH)
		return vn_name_map_fail(j, j->rule[entry], "%s has %" PRId64 " along %s, more than %d", e->name, size, k->each,
		                        MOST_EACH);
	*n = (int)size;
	return VN_OK;
}

static vn_status collect_outcomes(vn_name_map_job *j)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(j->r); i++) {
		const int               k = j->rule[i];
		const vn_name_map_rule *rule = k >= 0 ? &j->m->rule[k] : NULL;
		j->use->left += k == VN_MAP_LEFT;
		j->use->mapped += rule && !rule->ignore;
		j->use->ignored += rule && rule->ignore;
		if (k == VN_MAP_LEFT) {
			st = add_outcome(j, i, -1, -1, vn_recording_entry(j->r, i)->name);
			continue;
		}
		if (!rule || rule->ignore)
			continue;
		int first = j->n[i], end = first + 1;
		if (rule->each && (st = count_indices(j, i, &end))) {
			st = allow_collected(j, st);
			continue;
		}
		for (int n = rule->each ? 0 : first; !st && n < end; n++) {
			if (!in_range(rule, n) || (rule->each && !is_in_model(j, k, n, vn_recording_entry(j->r, i)->step)))
				continue;
			if (rule->either[0])
				st = add_outcome(j, i, n, -1, rule->either[j->chosen[k]]);
			if (!st && rule->to)
				st = add_outcome(j, i, n, -1, rule->to);
			for (int p = 0; !st && p < rule->n_parts; p++)
				st = add_outcome(j, i, n, p, rule->parts[p]);
			st = allow_collected(j, st);
		}
	}
	return st;
}

static bool is_copy(const vn_name_map_job *j, const vn_name_map_outcome *o)
{
	return o->rule >= 0 && j->m->rule[o->rule].copy;
}

static bool is_fallback(const vn_name_map_job *j, const vn_name_map_outcome *o)
{
	return o->rule >= 0 && (j->m->rule[o->rule].fallback || is_copy(j, o));
}

/* Two sources of one result must hold the same numbers, or one of them is misnamed. */
static vn_status check_copy(vn_name_map_job *j, const vn_name_map_outcome *x, const vn_name_map_outcome *y)
{
	const vn_entry   *a = vn_recording_entry(j->r, x->entry), *b = vn_recording_entry(j->r, y->entry);
	const int64_t     n = vn_shape_count(&a->shape);
	vn_numbers_differ d;
	if (n != vn_shape_count(&b->shape))
		return vn_name_map_fail(j, y->rule, "%s and %s both become %s, but have %" PRId64 " and %" PRId64 " numbers",
		                        a->name, b->name, x->name, n, vn_shape_count(&b->shape));
	const vn_status st = vn_numbers_compare(j->r, x->entry, j->r, y->entry, &d, j->err);
	if (!st && d.count)
		return vn_name_map_fail(j, y->rule, "%s and %s both become %s, but differ by up to %.3g", a->name, b->name,
		                        x->name, d.most);
	return st;
}

static int compare_outcomes(const void *a, const void *b, void *context)
{
	const vn_name_map_job     *j = context;
	const vn_name_map_outcome *x = a, *y = b;
	const int s = vn_recording_entry(j->r, x->entry)->step, t = vn_recording_entry(j->r, y->entry)->step;
	const int c = s != t ? (s < t ? -1 : 1) : strcmp(x->name, y->name);
	if (c)
		return c;
	if (is_fallback(j, x) != is_fallback(j, y))
		return is_fallback(j, x) ? 1 : -1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

static bool same_name(const vn_name_map_job *j, const vn_name_map_outcome *x, const vn_name_map_outcome *y)
{
	return strcmp(x->name, y->name) == 0 &&
	       vn_recording_entry(j->r, x->entry)->step == vn_recording_entry(j->r, y->entry)->step;
}

static vn_status check_names(vn_name_map_job *j)
{
	int kept = 0;
	if (j->n_out)
		vn_sort(j->out, (size_t)j->n_out, sizeof *j->out, compare_outcomes, j);
	for (int i = 0; i < j->n_out; i++) {
		const vn_name_map_outcome *o = &j->out[i], *before = kept ? &j->out[kept - 1] : NULL;
		if (before && same_name(j, before, o)) {
			if (is_fallback(j, o) && (!is_fallback(j, before) || (is_copy(j, o) && is_copy(j, before)))) {
				const vn_status st = is_copy(j, o) ? allow_collected(j, check_copy(j, before, o)) : VN_OK;
				if (st)
					return st;
				j->use->spare++;
				continue;
			}
			const vn_status st = allow_collected(
				j, vn_name_map_fail(j, o->rule >= 0 ? o->rule : before->rule, "%s and %s both become %s",
			                        vn_recording_entry(j->r, before->entry)->name,
			                        vn_recording_entry(j->r, o->entry)->name, o->name));
			if (st)
				return st;
			continue;
		}
		j->out[kept++] = *o;
	}
	j->n_out = kept;
	return VN_OK;
}

static vn_status place_all(vn_name_map_job *j)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < j->n_out; i++)
		st = allow_collected(j, vn_name_map_place(j, &j->out[i]));
	return st ? st : vn_derive_end(j->made, j->err);
}

vn_status vn_name_map_apply(const vn_name_map *m, vn_recording **r, vn_name_map_use *use, vn_error *err)
{
	const size_t    count = (size_t)vn_recording_count(*r);
	vn_name_map_job j = { .m = m,
		                  .r = *r,
		                  .use = use,
		                  .err = err,
		                  .rule = vn_alloc(count, sizeof(int)),
		                  .n = vn_alloc(count, sizeof(int)),
		                  .chosen = vn_alloc((size_t)m->n, sizeof(int)) };
	vn_status       st = VN_OK;

	use->mapped = use->ignored = use->left = use->spare = 0;
	for (size_t i = 0; i < count; i++)
		j.rule[i] = VN_MAP_LEFT;
	for (int k = 0; k < m->n; k++)
		j.chosen[k] = -1;
	choose_rules(&j);
	for (int k = 0; !st && k < m->n; k++)
		if (m->rule[k].either[0])
			st = allow_collected(&j, decide_name(&j, k));
	for (size_t i = 0; !st && i < count; i++)
		if (j.rule[i] >= 0 && m->rule[j.rule[i]].either[0] && j.chosen[j.rule[i]] < 0)
			j.rule[i] = VN_MAP_GONE;
	if (!st && j.unknown)
		st = vn_name_map_fail(&j, j.unknown - 1, "which checkpoints the model has is not known: give --model MODEL");
	if (!st && !(st = collect_outcomes(&j)) && use->mapped + use->ignored && !(st = check_names(&j)) &&
	    !(st = vn_derive(vn_recording_path(*r), r, 1, &j.made, err)))
		st = place_all(&j);
	if (j.made)
		*r = j.made;
	VN_FREE(j.rule, j.n, j.chosen, j.out);
	return st;
}
