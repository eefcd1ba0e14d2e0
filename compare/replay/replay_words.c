/* replay_words.c: see replay_words.h. */
#include "compare/replay/replay_words.h"
#include "compare/comparison/checkpoint.h"

#include "compare/judge/localise.h"
#include "compare/replay/replay.h"
#include "compare/text/columns.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdio.h>

const char *vn_say_lying(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS])
{
	const vn_entry *e = vn_recording_entry(c->opened.ref, p->ref);
	char map[240];
	vn_say_columns(p->replay.columns, vn_entry_axes(e), e->shape.rank, map, sizeof map);
	snprintf(text, VN_WORDS, p->replay.wrong_so ? "its columns lie as %s, as elsewhere in this run, and in the reference's order it is wrong, too; %s"
	                                            : "its columns lie as %s, and what reads it is right so: an order, no mistake; %s", vn_columns_name(p->replay.columns), map);
	return text;
}

/* Of its inputs those that were captured wrongly. */
static void say_should(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS])
{
	int input[VN_MAX_IN], n = vn_inputs_of(c, (int)(p - c->result.point), input, VN_MAX_IN), said = 0;
	char label[VN_LABEL];
	for (int i = 0; i < n; i++)
		if (c->result.point[input[i]].replay.captured)
			vn_text_add(text, VN_WORDS, "%s%s", said++ ? " and " : "; right on what ", vn_label(&c->result.point[input[i]], label));
	vn_text_add(text, VN_WORDS, said ? " should be" : "; right on what %s should be", vn_label(&c->result.point[p->replay.behind], label));
}

const char *vn_say_replay(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS])
{
	char label[VN_LABEL], lying[VN_WORDS];
	text[0] = 0;
	if (!p->replayed)
		return text;
	vn_text_add(text, VN_WORDS, "itself nmse %.2g (%.3g x floor)", p->replay.local, vn_local_over_floor(p));
	if (vn_local_peak(p) > VN_PEAK_LIMIT)
		vn_text_add(text, VN_WORDS, ", worst token %.3g x and worst element %.3g x floor", p->replay.local_token / p->replay.floor_token,
		            p->replay.local_max / p->replay.floor_max);
	vn_text_add(text, VN_WORDS, ", inherited %.2g", p->replay.inherited);
	if (!isnan(p->replay.gain))
		vn_text_add(text, VN_WORDS, ", which is %.2g times what came in", p->replay.gain);
	if (p->replay.span > 1)
		vn_text_add(text, VN_WORDS, "; of the %d operations between captured tensors and here", p->replay.span);
	if (p->replay.columns)
		vn_text_add(text, VN_WORDS, "; %s", vn_say_lying(c, p, lying));
	if (p->replay.captured)
		vn_text_add(text, VN_WORDS, "; what reads it was computed from other numbers, which are right: it was captured wrongly, or changed after");
	if (p->replay.behind >= 0 && c->result.point[p->replay.behind].replay.captured)
		say_should(c, p, text);
	else if (p->replay.behind >= 0)
		vn_text_add(text, VN_WORDS, "; the error of %s may be all of it", vn_label(&c->result.point[p->replay.behind], label));
	return text;
}
