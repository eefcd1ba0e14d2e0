/* floor.c: measures how far the candidate's number format alone moves each checkpoint: the
 * reference engine in the candidate's precision, against the reference. From a recording of such a
 * run, or run here (floor_run.c). */
#include "compare/floor/floor_channels.h"
#include "compare/floor/floor.h"
#include "compare/floor/precision.h"
#include "compare/judge/judge.h"
#include "compare/match/align.h"
#include "compare/match/batch.h"
#include "compare/match/contract.h"
#include "compare/floor/floor_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- from a recording ----------------------------------------------------- */

/* "torch.float16" and "f16" are one precision. An unknown word equals only itself. */
static const char *plain_precision(const char *word)
{
	vn_policy p;
	return vn_policy_from_word(word, &p) ? vn_policy_name(p) : word;
}

static const char *wanted_policy(const vn_opened *o)
{
	return o->request.options->floor_policy ? vn_policy_name(*o->request.options->floor_policy)
	                                        : plain_precision(vn_precision_of_candidate(o));
}

/* Rows of other tokens have another floor, even if the shapes match. */
static bool same_rows(const vn_step *x, const vn_step *y)
{
	return !x || !y ||
	       (x->position == y->position && x->tokens == y->tokens && x->first_row == y->first_row && x->rows == y->rows);
}

static int floor_entry(const vn_opened *o, const vn_checkpoint *p)
{
	const int e = p->m.n ? vn_recording_find(o->floor, p->step, p->name) : -1;
	if (e < 0 || !same_rows(vn_recording_step(o->ref, p->step), vn_recording_step(o->floor, p->step)) ||
	    !vn_shape_equal(&vn_recording_entry(o->floor, e)->shape, &vn_recording_entry(o->ref, p->ref)->shape))
		return -1;
	return e;
}

vn_status vn_floor_of_file(vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_floor_result *found,
                           vn_remarks *remarks, vn_error *err)
{
	vn_status st;

	if ((st = vn_contract(o, remarks, o->floor, "floor", NULL, err)))
		return st;
	const char *engine = vn_facts_get(vn_recording_run(o->floor), "engine"),
			   *own = vn_facts_get(vn_recording_run(o->cand), "engine");
	if (engine && own && strcmp(engine, own) == 0 && strcmp(engine, "ref") != 0)
		vn_lines_add(&remarks->warnings,
		             "the floor comes from the candidate's own engine (%.40s): faults of that engine cannot be seen",
		             engine);
	if (strcmp(plain_precision(vn_precision_of(o->floor)), wanted_policy(o)) != 0 &&
	    !(o->request.options->allow & VN_ALLOW_PRECISION)) {
		vn_lines_refuse_as(&remarks->refusals, "precision",
		                   "the floor was run in %s and the candidate in %s (use it anyway: --allow precision)",
		                   vn_precision_of(o->floor), wanted_policy(o));
		return vn_fail(err, VN_ERR_MISMATCH, "%s cannot be the floor of %s", vn_recording_path(o->floor),
		               vn_recording_path(o->cand));
	}
	if ((st = vn_floor_contract(o, remarks, err)))
		return st;
	/* The reference's rows were chosen before. A step for which the floor has fewer rows gets no
	 * floor. */
	if ((st = vn_align(o->ref, &remarks->notes, o->floor, "floor", false, err)))
		return st;
	if (!o->request.options->model)
		vn_policy_of_recording(o->floor, &o->policy);
	snprintf(found->from, sizeof found->from, "%s (%.32s)", vn_recording_path(o->floor), vn_precision_of(o->floor));
	/* Limits without a floor judge what cannot be read. */
	const vn_batch batch = { o->floor, floor_entry, vn_judge_floor_set, NULL };
	if (!(st = vn_batch_measure(o, all, &batch, err)))
		st = vn_floor_channels_of_file(o, all, pools, floor_entry, err);
	if (st)
		return st;
	const vn_floor_parts f = { o, all, pools, found, remarks, NULL };
	return vn_floor_check_file(&f, err);
}

/* Warns of checkpoints without a floor, because looser limits apply to them. */
static void warn_of_gaps(const vn_checkpoints *all, vn_lines *warnings)
{
	const char *first = NULL;
	int         n = 0;
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (!p->m.n || p->invalid_floor || (p->has_floor && isfinite(p->floor[VN_M_NMSE])))
			continue;
		first = first ? first : p->name;
		n++;
	}
	if (n)
		vn_lines_add(warnings, "the floor lacks %d checkpoint%s (first: %s): without_floor limits apply there", n,
		             n == 1 ? "" : "s", first);
}

void vn_floor_finish(const vn_opened *o, vn_checkpoints *all, const vn_floor_result *found, vn_lines *warnings)
{
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		for (int m = 0; m < VN_N_METRICS && p->has_floor; m++)
			if (!isnan(p->floor[m])) /* not known stays so */
				p->floor[m] = fmax(p->floor[m], vn_judge_floor_of_sums(o, (vn_metric)m));
	}
	if (*found->from)
		warn_of_gaps(all, warnings);
	if (o->floor || o->policy.storage == VN_F64) /* no format is finer than f64 */
		vn_floor_drop_equal(o, all, warnings);
}
