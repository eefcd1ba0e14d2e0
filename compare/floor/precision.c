/* precision.c: do a recording's numbers have the precision that it declares?
 *
 * Limits and the floor are chosen by the declared precision. A candidate that declares f16 and
 * holds float32 is judged by limits a million times too wide: it is refused, unless that is
 * allowed. A reference that declares f32 and ran in bfloat16 is no reference: that is a warning. So
 * the first numbers of some tensors are examined (capture/recording/shown.h), and the majority
 * decides.
 */
#include "compare/floor/precision.h"

#include "compare/comparison/checkpoint.h"
#include "capture/recording/shown.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"

#include <stdio.h>

/* tensors sampled across the model, since most would need decompressing */
enum { TENSORS = 64 };

/* What to do about a claim that contradicts the numbers. */
static void add_remedy(char *text, size_t room, const vn_recording *r, const char *word)
{
	if (vn_facts_get(vn_recording_run(r), "imported"))
		vn_text_add(text, room, "; vernier import without --precision records %s", word);
	else
		vn_text_add(text, room, "; record it with precision %s", word);
}

vn_status vn_floor_check_precision(const vn_opened *o, vn_remarks *remarks, const char *who, vn_recording *r,
                                   vn_error *err)
{
	const char        *word = r == o->cand ? vn_precision_of_candidate(o) : vn_precision_of(r);
	char               text[300];
	vn_policy          said;
	vn_shown_precision shown;
	vn_status          st;

	if (!vn_policy_from_word(word, &said))
		return VN_OK;
	vn_recording_defer(r, true); /* most tensors are measured later, and checked in the same pass */
	st = vn_shown_format(r, TENSORS, &shown, err);
	vn_recording_defer(r, false);
	vn_recording_forget(r);
	if (st || !vn_shown_denies(&shown, word))
		return st;
	snprintf(text, sizeof text, "the %s claims precision %.32s, but its numbers are %s: %d of the %d tensors examined",
	         who, word, vn_dtype_name(shown.format), shown.agree, shown.votes);
	add_remedy(text, sizeof text, r, vn_shown_word(&shown));
	vn_text_clean(text, sizeof text);
	if (vn_dtype_digits(shown.format) < vn_dtype_digits(said.storage))
		vn_lines_add(&remarks->warnings, "%s", text);
	else
		vn_remarks_refuse(o, remarks, VN_ALLOW_CLAIMS, "claims", "precision: %s", text);
	return VN_OK;
}

const char *vn_precision_of(const vn_recording *r)
{
	const char *p = vn_facts_get(vn_recording_run(r), "precision");
	return p ? p : "unknown";
}

const char *vn_precision_of_candidate(const vn_opened *o)
{
	return o->request.options->precision ? vn_policy_name(*o->request.options->precision)
	       : o->request.infers           ? vn_policy_name(o->request.inferred)
	                                     : vn_precision_of(o->cand);
}

void vn_swapped_line(const vn_opened *o, char line[VN_SHELL_LINE])
{
	const vn_compare_options *options = o->request.options;

	snprintf(line, VN_SHELL_LINE, "vernier %s", options->explain ? "explain" : "compare");
	vn_shell_add(line, VN_SHELL_LINE, vn_recording_path(o->cand));
	vn_shell_add(line, VN_SHELL_LINE, vn_recording_path(o->ref));
	if (options->model)
		vn_shell_option(line, "--model", options->model);
}

bool vn_warn_swapped(const vn_opened *o, vn_lines *warnings)
{
	const char *ref = vn_facts_get(vn_recording_run(o->ref), "precision"),
			   *cand = vn_facts_get(vn_recording_run(o->cand), "precision");
	vn_policy a, b;
	char      line[VN_SHELL_LINE];

	if (!ref || !cand || vn_policy_partly(cand) || !vn_policy_from_word(ref, &a) || !vn_policy_from_word(cand, &b) ||
	    vn_policy_digits(a) > vn_dtype_digits(VN_F16) || vn_policy_digits(b) <= vn_dtype_digits(VN_F16))
		return false;
	vn_swapped_line(o, line);
	vn_lines_add(warnings, "the reference ran in %.40s and the candidate in %.40s; if they are swapped, type: %s", ref,
	             cand, line);
	return true;
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

void vn_assume_policy(vn_opened *o, vn_lines *notes)
{
	if (o->request.options->floor_policy)
		o->policy = *o->request.options->floor_policy;
	if (o->request.options->floor_policy || vn_policy_from_word(vn_precision_of_candidate(o), &o->policy) ||
	    vn_policy_of_recording(o->cand, &o->policy))
		return;
	vn_lines_add(notes,
	             "%s: precision '%.40s' is not one of %s; %s, the format of its tensors, is used (change it with "
	             "--precision)",
	             vn_recording_path(o->cand), vn_precision_of(o->cand), vn_policy_names, vn_policy_name(o->policy));
}

bool vn_policy_finer(vn_policy a, vn_policy b)
{
	return vn_policy_digits(a) > vn_policy_digits(b);
}
