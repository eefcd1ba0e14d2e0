/* replay_words.c: see replay_words.h. */
#include "compare/replay/replay_words.h"

#include "compare/judge/localise.h"
#include "compare/replay/local.h"
#include "compare/text/columns.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *vn_replay_say_column_order(const vn_opened *o, const vn_checkpoint *p, char text[VN_WORDS])
{
	const vn_entry *e = vn_recording_entry(o->ref, p->ref);
	char            map[240];
	vn_text_say_columns(p->replay.columns, vn_entry_axes(e), e->shape.rank, map, sizeof map);
	snprintf(
		text, VN_WORDS,
		p->replay.wrong_in_order
			? "its columns are in the order %s, as elsewhere in this run; read in that order, it is wrong too; %s"
			: "its columns are in the order %s, and the operation that reads it uses that order: not a mistake; %s",
		vn_columns_name(p->replay.columns), map);
	return text;
}

/* Names its inputs that were captured wrongly. */
static void say_recorder_faults(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                const vn_checkpoint *p, char text[VN_WORDS])
{
	int  input[VN_MAX_IN], n = vn_inputs_of(o, all, localised, (int)(p - all->of), input, VN_MAX_IN), said = 0;
	char label[VN_LABEL];
	for (int i = 0; i < n; i++)
		if (all->of[input[i]].replay.recorder_fault)
			vn_text_add(text, VN_WORDS, "%s%s",
			            said++ ? " and " : "; correct when recomputed from the right values of ",
			            vn_label(&all->of[input[i]], label));
	if (!said)
		vn_text_add(text, VN_WORDS, "; correct when recomputed from the right values of %s",
		            vn_label(&all->of[p->replay.charged_to], label));
}

const char *vn_replay_say_result(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                 const vn_checkpoint *p, char text[VN_WORDS])
{
	char label[VN_LABEL], order[VN_WORDS];
	text[0] = 0;
	if (!p->replayed)
		return text;
	if (p->replay.other_ids)
		vn_text_add(text, VN_WORDS, "local error: %" PRId64 " whole numbers are others", p->replay.other_ids);
	else if (p->replay.not_measured)
		vn_text_add(text, VN_WORDS, "local error: -%s",
		            p->replay.bad ? ", NaN or infinite on one side only" : ", its inputs have NaN or infinity");
	else
		vn_text_add(text, VN_WORDS, "local error: nmse %.2g (%.3g x floor)", p->replay.local, vn_local_over_floor(p));
	if (vn_local_peak(p) > VN_PEAK_LIMIT)
		vn_text_add(text, VN_WORDS, ", worst token %.3g x floor, worst element %.3g x floor", vn_local_token(p),
		            vn_local_element(p));
	if (isnan(p->replay.inherited))
		vn_text_add(text, VN_WORDS, "; inherited error: -");
	else
		vn_text_add(text, VN_WORDS, "; inherited error: nmse %.2g", p->replay.inherited);
	if (!isnan(p->replay.gain))
		vn_text_add(text, VN_WORDS, ", %.2g times the error of its inputs", p->replay.gain);
	if (p->replay.span > 1)
		vn_text_add(text, VN_WORDS,
		            "; these are the errors of %d operations together, whose tensors in between were not recorded",
		            p->replay.span);
	if (p->replay.columns)
		vn_text_add(text, VN_WORDS, "; %s", vn_replay_say_column_order(o, p, order));
	if (p->replay.recorder_fault)
		vn_text_add(
			text, VN_WORDS,
			"; captured wrongly, or changed after the capture: the operation that reads it used the right numbers");
	if (p->replay.charged_to >= 0 && all->of[p->replay.charged_to].replay.recorder_fault)
		say_recorder_faults(o, all, localised, p, text);
	else if (p->replay.charged_to >= 0)
		vn_text_add(text, VN_WORDS, "; the error of %s may explain all of this error",
		            vn_label(&all->of[p->replay.charged_to], label));
	return text;
}

int vn_replayed_products(const vn_opened *o, const vn_checkpoint *p, vn_gemm g[VN_MAX_GEMM])
{
	const vn_step *step = vn_recording_step(o->cand, p->step);
	const vn_plan *plan = p->replayed && step && o->model ? vn_model_plan(o->model) : NULL;
	const int      value = plan ? vn_plan_find(plan, p->name) : -1;
	const int      n = value < 0 ? 0 : vn_gemms_of(plan, value, g);

	for (int i = 0; i < n; i++)
		g[i] = vn_gemm_at(&g[i], step->tokens, step->position + step->tokens);
	return n;
}
