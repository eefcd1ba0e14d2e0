/* contract_weights.c: do two recordings have the same weights? If not, which differ, and how. */
#include "compare/match/contract.h"
#include "compare/weights/weights_report.h"
#include "compare/weights/weights_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Repeats the comparison with the numbers of a model whose weights are those of one side, or
 * nearly. They decide where the tables cannot. */
static void with_numbers(vn_weight_side side[2], const vn_compare_options *o, bool mtp, vn_weights **w)
{
	vn_model  *m;
	vn_tensor *numbers[2];
	vn_error   none; /* a model that cannot be opened is reported where the floor is made */

	if (vn_model_open_as(o->model, vn_model_with(mtp) | VN_MODEL_MAPPED, &m, &none))
		return;
	for (int k = 0; k < 2; k++) {
		side[k].numbers = numbers[k] = vn_weights_numbers(side[k].row, side[k].n, m, o->threads);
		side[k].plan = side[k].plan ? side[k].plan : vn_model_plan(m);
	}
	if (numbers[0] || numbers[1]) {
		vn_weights_free(*w);
		*w = vn_weights_compare(&side[0], &side[1], o->threads);
	}
	VN_FREE(numbers[0], numbers[1]);
	vn_model_close(m);
}

/* Writes the refusals. The first line has the count and the word that allows them. */
static void refuse_weights(const vn_weights *w, vn_lines *refusals)
{
	VN_ENDS(vn_lines_free) vn_lines lines = { 0 };

	vn_weights_lines(w, &lines);
	if (lines.n)
		vn_lines_refuse(refusals, "weights", "%s", lines.line[0]);
	for (int i = 0; i < refusals->n; i++) /* of another architecture, every weight differs */
		if (strncmp(refusals->line[i], "config: model_type ", 19) == 0)
			return;
	for (int i = 1; i < lines.n; i++)
		vn_lines_add(refusals, "%s", lines.line[i]);
}

/* Adds refusals that list the differing weights, or one note when they are allowed to differ. */
static void add_weight_lines(const vn_opened *o, vn_remarks *remarks, const vn_weights *w, const char *who)
{
	char text[VN_WEIGHT_WORDS];
	if (w->extra)
		vn_lines_add(&remarks->notes, "weights: %d in the %s that the reference does not list", w->extra, who);
	if (w->n_found > w->extra && !(o->request.options->allow & VN_ALLOW_WEIGHTS))
		refuse_weights(w, &remarks->refusals);
	else if (w->n_found > w->extra)
		vn_lines_add(&remarks->notes, "allowed (weights): %s in the %s", vn_weights_summary(w, text), who);
}

/* Is one of the names on both sides (common) with other numbers? */
static bool differs_in_common(const vn_weights *w)
{
	for (int i = 0; i < w->n_found; i++)
		if (w->found[i].row[0] && w->found[i].row[1] && strcmp(w->found[i].row[0]->name, w->found[i].row[1]->name) == 0)
			return true;
	return false;
}

/* The number of the other side's weights that are one of the reference's under another name; 0 too
 * if more than a quarter of the names (common) are on both sides, if one of these differs, or if
 * the weights under other names are known ones in another form, such as a fused product. */
static int renamed_weights(const vn_weights *w, const vn_weight_side side[2], int *common)
{
	int n = 0, both = 0;

	for (int i = 0; i < side[1].n; i++) {
		int k = 0, same = -1;
		while (k < side[0].n && strcmp(side[0].row[k].name, side[1].row[i].name) != 0) {
			same = same < 0 && vn_weights_same(&side[0].row[k], &side[1].row[i]) ? k : same;
			k++;
		}
		both += k < side[0].n;
		n += k == side[0].n && same >= 0;
	}
	*common = both;
	return 4 * both > w->n[0] || w->n_found < w->n[0] + w->n[1] - 2 * both || differs_in_common(w) ? 0 : n;
}

static bool has_head(const vn_plan *plan)
{
	return vn_plan_of_point(plan, VN_POINT_MTP_LOGITS) >= 0;
}

/* Leaves out the weights of a prediction head, the last names, if only one side ran it. */
static void leave_out_head(vn_weight_side side[2])
{
	if (!side[0].plan || !side[1].plan || has_head(side[0].plan) == has_head(side[1].plan))
		return;
	for (int i = 0; i < 2; i++)
		while (side[i].n > 0 && strncmp(side[i].row[side[i].n - 1].name, "mtp.", 4) == 0)
			side[i].n--;
}

void vn_contract_weights(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who,
                         vn_weights **weights)
{
	const vn_compare_options *options = o->request.options;
	vn_weight_side            side[2];
	vn_plan                  *made[2] = { vn_weight_side_of(o->ref, &side[0]), vn_weight_side_of(other, &side[1]) };
	vn_weights               *w = NULL;

	leave_out_head(side);
	if (side[0].n <= 0 || side[1].n <= 0) {
		vn_lines_add(&remarks->notes, "weights: the %s records none; not checked", side[0].n > 0 ? who : "reference");
	} else {
		w = vn_weights_compare(&side[0], &side[1], options->threads);
		int       common;
		const int renamed = renamed_weights(w, side, &common);
		if (renamed) {
			char names[24] = "no name is";
			if (common)
				snprintf(names, sizeof names, "%d name%s", common, common == 1 ? " is" : "s are");
			vn_lines_add(&remarks->notes,
			             "weights: %s on both sides; %d of the %d others of the %s are the reference's under another "
			             "name, the rest was not checked",
			             names, renamed, side[1].n - common, who);
			vn_weights_free(w);
			w = NULL;
		} else if (options->model && w->n_found + w->rounded > 0)
			with_numbers(side, options, vn_recording_has_mtp(o->ref) || vn_recording_has_mtp(other), &w);
		if (w)
			add_weight_lines(o, remarks, w, who);
	}
	vn_plan_destroy(made[0]);
	vn_plan_destroy(made[1]);
	if (weights)
		*weights = w;
	else
		vn_weights_free(w);
}

bool vn_other_weights(const vn_weights *w)
{
	return w && w->n_found > 0;
}
