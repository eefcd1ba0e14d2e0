/* compare_judge.c: compares one pair and, where nobody declared the candidate's precision, finds
 * the formats of its roles (compare_infer.h).
 *
 * Real engines mix formats: a float32 run with a float16 cache, or with products in bfloat16.
 * Judged as float32, the operations of that role are wrong in every layer and step. If so, the pair
 * is judged by the policy under which they are right. Where the precision was declared, the
 * declaration rules, and the policy found is only named in a warning.
 */
#include "compare/compare_infer.h"

#include "compare/chapters/chapters.h"
#include "compare/floor/precision.h"
#include "capture/recording/shown.h"

#include <stdio.h>

enum { TENSORS = 64 }; /* whose first numbers are looked at */

/* *coarse: the numbers themselves are of a coarser format than the precision: that is said
 * elsewhere (precision.h). *heads: only logits were recorded, in float32, and nobody declared a
 * precision, so it may be that of a coarser run: notes that. */
static vn_status look_at_numbers(const vn_compare_line *k, vn_comparison *c, bool *coarse, bool *heads, vn_error *err)
{
	const vn_compare_options *o = c->opened.request.options;
	vn_shown_precision        shown;
	vn_policy                 said;
	const vn_status           st = vn_shown_format(c->opened.cand, TENSORS, &shown, err);

	if (st || !vn_policy_from_word(vn_precision_of(c->opened.cand), &said))
		return st;
	*coarse = shown.votes && vn_dtype_digits(shown.format) < vn_dtype_digits(said.storage);
	*heads = shown.heads && shown.format == VN_F32 && said.storage == VN_F32 && !o->precision && !o->bitwise &&
	         !k->limits && !vn_precision_declared(c->opened.cand);
	if (*heads)
		vn_lines_add(
			&c->result.remarks.notes,
			"nobody declared the candidate's precision, and logits do not show that of the layers before them: "
			"if these computed in 16 bits, --precision bf16 or f16 says so");
	return VN_OK;
}

static bool can_infer(const vn_compare_line *k, const vn_comparison *c, vn_policy *policy)
{
	const vn_compare_options *o = c->opened.request.options;

	return !c->result.verdict.within && c->opened.model && c->opened.plan && c->result.replayed && !o->precision &&
	       !o->floor_policy && !o->bitwise && !k->limits && !(o->allow & (VN_ALLOW_ITSELF | VN_ALLOW_WEIGHTS)) &&
	       vn_policy_from_word(vn_precision_of(c->opened.cand), policy) && !vn_policy_mixed(*policy);
}

static void say_inferred(vn_comparison *c, vn_policy policy, bool declared)
{
	char words[160];

	vn_policy_words(policy, words, sizeof words);
	if (declared)
		vn_lines_add(
			&c->result.remarks.warnings,
			"the candidate is declared as %s, but its numbers are those of a run with %s: --precision %s judges "
			"it as that",
			vn_precision_of(c->opened.cand), words, vn_policy_name(policy));
	else
		vn_lines_add(&c->result.remarks.warnings,
		             "nobody declared the candidate's formats; it is judged as its numbers are: %s (--precision %s "
		             "declares it)",
		             words, vn_policy_name(policy));
}

/* The first steps lack the policy, or they alone have it. from: the first step that differs. */
static void say_later(vn_comparison *c, vn_policy policy, int from, bool first)
{
	char words[160];

	vn_policy_words(policy, words, sizeof words);
	vn_lines_add(&c->result.remarks.warnings,
	             first ? "from step %d on, the candidate's numbers are not those of a run with %s: its formats change"
	                   : "from step %d on, the candidate's numbers are those of a run with %s: its formats change",
	             from, words);
}

/* Closes c and compares again, by the policy found. */
static vn_status judge_by(const vn_inference *x, vn_comparison *c, vn_policy policy, vn_error *err)
{
	const vn_request was = c->opened.request;

	vn_comparison_close(c);
	*c = (vn_comparison) { .opened.request = {
							   .options = was.options, .again = was.again, .infers = true, .inferred = policy } };
	const vn_status st = vn_compare_open(x->k, c, NULL, x->chosen, x->room, err);
	return st ? st : vn_compare(c, err);
}

vn_status vn_compare_infer(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	vn_recording *first[2] = { NULL };
	vn_inference  x = { k, c->opened.request.options, c->opened.request.again, chosen, room, first, false, false, 0 };
	char          kept[128];
	vn_policy     policy;
	vn_status     st = VN_OK;

	c->opened.request.unexplained = false;
	const bool declared = vn_precision_declared(c->opened.cand), can = can_infer(k, c, &policy);
	bool       coarse = true;
	if ((can || (!declared && !c->result.verdict.within)) && (st = look_at_numbers(k, c, &coarse, &x.heads, err)))
		return st;
	if (coarse || !can)
		return vn_chapter_explain(c, err);
	snprintf(kept, sizeof kept, "%s", chosen);
	const vn_policy was = policy;
	const int       from = vn_compare_wrong_later(&c->opened, &c->result.checkpoints);
	x.later = from >= 0;
	if ((st = vn_compare_find_policy(&x, &c->opened, &c->result.checkpoints, &policy, err)))
		return st;
	const bool found = !vn_policy_same(policy, was);
	bool       judged = found && !declared && !x.later;
	if (judged && !(st = judge_by(&x, c, policy, err))) {
		const int other = vn_compare_wrong_later(&c->opened, &c->result.checkpoints);
		say_inferred(c, policy, false);
		if (other >= 0 && vn_compare_policy_ends(&c->opened, &c->result.checkpoints, policy, other))
			say_later(c, policy, other, true);
	} else if (found && !declared && !judged) { /* few operations may be wrong where all have the format */
		vn_comparison whole = { .opened.request = { .options = x.options, .again = x.again } };
		st = judge_by(&x, &whole, policy, err);
		judged = !st && whole.result.verdict.within;
		if (judged) {
			vn_comparison_close(c);
			*c = whole;
			say_inferred(c, policy, false);
		} else {
			vn_comparison_close(&whole);
		}
	}
	if (!st && !judged) {
		snprintf(chosen, room, "%s", kept);
		if (found && x.later)
			say_later(c, policy, from, false);
		else if (found)
			say_inferred(c, policy, true);
		st = vn_chapter_explain(c, err);
	}
	return st;
}

static vn_status judge_pair(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	vn_status st = vn_compare_open(k, c, NULL, chosen, room, err);

	c->opened.request.unexplained = true;
	if (st || (st = vn_compare(c, err)))
		return st;
	return vn_compare_infer(k, c, chosen, room, err);
}

vn_status vn_compare_judge(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	return (k->absent ? vn_compare_judge_alone : judge_pair)(k, c, chosen, room, err);
}
