/* against.c: see against.h. */
#include "capture/run/against.h"

#include "libref/base/stats.h"

#include <stdio.h>
#include <string.h>

vn_status vn_against_open(vn_against *a, const char *path, vn_error *err)
{
	const vn_status st = vn_recording_open(path, &a->ref, err);

	if (!st && !vn_recording_complete(a->ref))
		return vn_fail(err, VN_ERR_MISMATCH, "%s: is incomplete: its run was interrupted", path);
	return st;
}

void vn_against_step(vn_against *a, int number, int64_t position, const int32_t *ids, int64_t tokens)
{
	const int32_t *theirs;
	const int64_t  n = vn_recording_tokens(a->ref, &theirs, NULL);

	a->step = number;
	a->same = vn_recording_batch(a->ref) == 0 && position + tokens <= n &&
	          memcmp(theirs + position, ids, (size_t)tokens * sizeof *ids) == 0;
	vn_recording_forget(a->ref);
}

void vn_against_look(const vn_against *a, const char *name, const vn_tensor *t, vn_judgement *j)
{
	const int       entry = vn_recording_find(a->ref, a->step, name);
	const vn_entry *e = entry >= 0 ? vn_recording_entry(a->ref, entry) : NULL;
	const size_t    n = (size_t)vn_shape_count(&t->shape);
	char            own[VN_SHAPE_TEXT], theirs[VN_SHAPE_TEXT];

	*j = (vn_judgement) { .opinion = VN_OPINION_NONE, .entry = entry };
	if (!e || !e->has_digest || n == 0)
		return;
	j->opinion = VN_OPINION_OUTSIDE;
	if (!a->same)
		snprintf(j->words, sizeof j->words, "the tokens of step %d are not the reference's: take them with %s", a->step,
		         a->step ? "--force-ids-from" : "--ids-from");
	else if (!vn_shape_equal(&e->shape, &t->shape))
		snprintf(j->words, sizeof j->words, "shape %s, %s in the reference", vn_shape_text(&t->shape, own),
		         vn_shape_text(&e->shape, theirs));
	if (*j->words)
		return;
	const vn_stats s = vn_stats_of(t->data, t->dtype, n);
	j->plain = s.nan + s.inf == 0 && s.min < s.max;
	j->about = (vn_left_out) { .name = e->name,
		                       .step = a->step,
		                       .dtype = t->dtype,
		                       .shape = t->shape,
		                       .digest = vn_digest_of(t->data, n * vn_dtype_size(t->dtype)),
		                       .reference = vn_entry_digest(e) };
	j->opinion = j->plain && e->dtype == t->dtype && strcmp(j->about.digest.hex, j->about.reference.hex) == 0
	                 ? VN_OPINION_AGREES
	                 : VN_OPINION_OPEN;
}
