/* precision.c: do a recording's numbers have the precision that it declares?
 *
 * Limits and the floor are chosen by the declared precision. A candidate that declares f16 and
 * holds float32 is judged by limits a million times too wide: it is refused, unless that is
 * allowed. A reference that declares f32 and ran in bfloat16 is no reference: that is a warning.
 * The digits that a number needs show in the number, whatever it is stored in: f16 results written
 * as float32 still end in 13 zero bits. So the first numbers of some tensors are examined, and the
 * majority decides.
 */
#include "compare/floor/precision.h"

#include "compare/comparison/checkpoint.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* SAMPLE: numbers read from the start of each tensor. ENOUGH_TO_TELL_FORMAT: fewer numbers prove
 * nothing, because 0, 1 and masks exist in every format. TENSORS: tensors sampled across the model,
 * since most would need decompressing. */
enum { SAMPLE = 512, ENOUGH_TO_TELL_FORMAT = 16, TENSORS = 64, FORMATS = 4 };

static const vn_dtype format[FORMATS] = { VN_BF16, VN_F16, VN_F32, VN_F64 }; /* coarsest first */

/* The format that an engine's word names; -1: unknown word. */
static int format_of(const char *precision)
{
	vn_policy p;
	if (!precision || !vn_policy_from_word(precision, &p))
		return -1;
	for (int i = 0; i < FORMATS; i++)
		if (format[i] == p.storage)
			return i;
	return -1;
}

/* Significand bits after the leading one, up to the last set bit. */
static int digits_of(double x)
{
	enum { STORED = DBL_MANT_DIG - 1 };
	int          exponent;
	const double fraction = frexp(x, &exponent); /* for subnormal numbers, too */
	uint64_t     bits;
	memcpy(&bits, &fraction, sizeof bits);
	bits &= (UINT64_C(1) << STORED) - 1;
	return bits ? STORED - __builtin_ctzll(bits) : 0;
}

/* The coarsest format that holds all these numbers; -1: too few numbers to tell. */
static int coarsest_format(const double *x, int64_t n)
{
	int most = 0, count = 0, i = 0;
	for (int64_t k = 0; k < n; k++)
		if (isfinite(x[k]) && x[k] != 0) {
			const int digits = digits_of(x[k]);
			most = digits > most ? digits : most;
			count++;
		}
	while (i + 1 < FORMATS && vn_dtype_digits(format[i]) < most)
		i++;
	return count < ENOUGH_TO_TELL_FORMAT ? -1 : i;
}

/* Embedding rows keep the format of the weights, whatever the engine computes in; what the plan
 * calls wide (the state of a delta rule, and what goes into it) is float32 in every engine. */
static bool shows_precision(const vn_plan *plan, const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);
	const int            value = plan ? vn_plan_find(plan, e->name) : -1;

	if ((p && p->place == VN_BEFORE_LAYERS) || (value >= 0 && vn_value_wide(plan, value)))
		return false;
	for (int i = 0; i < FORMATS; i++)
		if (e->dtype == format[i])
			return true;
	return false;
}

static vn_status look_at(vn_recording *r, int entry, int *which, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const int64_t   all = vn_shape_count(&e->shape), n = all < SAMPLE ? all : SAMPLE;
	unsigned char   data[SAMPLE * 8];
	double          x[SAMPLE];
	const vn_status st = vn_recording_read(r, entry, 0, n, data, err);
	vn_recording_release(r, entry);

	*which = -1;
	if (st)
		return vn_status_ends_job(st) ? st : VN_OK; /* an unreadable tensor is reported where it is compared */
	vn_to_f64(x, data, e->dtype, (size_t)n);
	*which = coarsest_format(x, n);
	return VN_OK;
}

vn_status vn_floor_check_precision(vn_comparison *c, const char *who, vn_recording *r, vn_error *err)
{
	const char    *word = vn_facts_get(vn_recording_run(r), "precision");
	const vn_plan *plan = vn_recording_plan(r) ? vn_recording_plan(r) : c->opened.plan;
	const int      said = format_of(word), count = vn_recording_count(r);
	int            found[FORMATS] = { 0 }, known = 0, most = 0, which;
	char           text[200];
	vn_status      st = VN_OK;

	if (said < 0)
		return VN_OK;
	vn_recording_defer(r, true); /* most tensors are measured later, and checked in the same pass */
	for (int i = 0, next = 0; i < count && !st; i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (i < next || e->same_as >= 0 || !shows_precision(plan, e) || (st = look_at(r, i, &which, err)))
			continue;
		next = i + (count + TENSORS - 1) / TENSORS;
		if (which >= 0)
			found[which]++, known++;
	}
	vn_recording_defer(r, false);
	vn_recording_forget(r);
	for (int i = 1; i < FORMATS; i++)
		most = found[i] > found[most] ? i : most;
	/* Autocast leaves many tensors in float32, perhaps most. It is enough that some have
	 * the claimed format. */
	if (st || most == said || 2 * found[most] <= known || (vn_policy_partly(word) && found[said]))
		return st;
	snprintf(text, sizeof text, "the %s claims precision %.32s, but its numbers are %s: %d of the %d tensors examined",
	         who, word, vn_dtype_name(format[most]), found[most], known);
	vn_text_clean(text, sizeof text);
	if (most < said)
		vn_lines_add(&c->result.warnings, "%s", text);
	else
		vn_comparison_refuse(c, VN_ALLOW_CLAIMS, "claims", "precision: %s", text);
	return VN_OK;
}

const char *vn_precision_of(const vn_recording *r)
{
	const char *p = vn_facts_get(vn_recording_run(r), "precision");
	return p ? p : "unknown";
}

void vn_swapped_line(const vn_comparison *c, char line[VN_SHELL_LINE])
{
	const vn_compare_options *o = c->request.options;

	snprintf(line, VN_SHELL_LINE, "vernier %s", o->explain ? "explain" : "compare");
	vn_shell_add(line, VN_SHELL_LINE, vn_recording_path(c->opened.cand));
	vn_shell_add(line, VN_SHELL_LINE, vn_recording_path(c->opened.ref));
	if (o->model)
		vn_shell_option(line, "--model", o->model);
}

void vn_warn_swapped(vn_comparison *c)
{
	const char *ref = vn_facts_get(vn_recording_run(c->opened.ref), "precision"),
			   *cand = vn_facts_get(vn_recording_run(c->opened.cand), "precision");
	vn_policy a, b;
	char      line[VN_SHELL_LINE];

	if (!ref || !cand || vn_policy_partly(cand) || !vn_policy_from_word(ref, &a) || !vn_policy_from_word(cand, &b) ||
	    vn_policy_digits(a) > vn_dtype_digits(VN_F16) || vn_policy_digits(b) <= vn_dtype_digits(VN_F16))
		return;
	vn_swapped_line(c, line);
	c->result.swapped = true;
	vn_lines_add(&c->result.warnings,
	             "the reference ran in %.40s and the candidate in %.40s; if they are swapped, type: %s", ref, cand,
	             line);
}

bool vn_policy_of_recording(const vn_recording *r, vn_policy *policy)
{
	int in[VN_N_DTYPES] = { 0 }, most = VN_F32;

	if (vn_policy_from_word(vn_precision_of(r), policy))
		return true;
	for (int i = 0; i < vn_recording_count(r); i++)
		in[vn_recording_entry(r, i)->dtype]++;
	for (int d = 0; d < VN_N_DTYPES; d++)
		if (in[d] > in[most] && vn_policy_from_name(vn_dtype_name((vn_dtype)d), policy))
			most = d;
	vn_policy_from_name(vn_dtype_name((vn_dtype)most), policy);
	return false;
}

void vn_assume_policy(vn_comparison *c)
{
	if (c->request.options->floor_policy)
		c->opened.policy = *c->request.options->floor_policy;
	if (c->request.options->floor_policy || vn_policy_of_recording(c->opened.cand, &c->opened.policy))
		return;
	vn_lines_add(&c->result.notes,
	             "%s: precision '%.40s' is not one of %s; %s, the format of its tensors, is used (change it with "
	             "--floor-precision)",
	             vn_recording_path(c->opened.cand), vn_precision_of(c->opened.cand), vn_policy_names,
	             vn_policy_name(c->opened.policy));
}

bool vn_policy_finer(vn_policy a, vn_policy b)
{
	return vn_policy_digits(a) > vn_policy_digits(b);
}
