/* identities_share.c: checks the layers of all steps, with one or several threads; see
 * identities.h. */
#include "capture/show/identities_internal.h"
#include "capture/recording/shown.h"

#include "libref/base/alloc.h"
#include "libref/family/family.h"

#include <stdlib.h>

/* The number of layers to check. The count in the file is untrusted; a layer has at least one
 * tensor. */
static int layers_of(const vn_recording *r)
{
	int layers = 0;
	for (int i = 0; i < vn_recording_count(r); i++) {
		const int n = vn_recording_entry(r, i)->layer + 1;
		layers = n > layers ? n : layers;
	}
	return layers < vn_recording_count(r) ? layers : vn_recording_count(r);
}

vn_status vn_identities_share(vn_identities_shared *s, vn_identities *found, int64_t *place, vn_error *err)
{
	const vn_step   *step;
	const int        steps = vn_recording_steps(s->r, &step);
	const int64_t    each = layers_of(s->r) + 1;
	vn_identity_walk w = { .r = s->r,
		                   .plan = vn_recording_plan(s->r) ? vn_recording_plan(s->r) : s->plan,
		                   .found = found,
		                   .err = err,
		                   .most = VN_HELD_BYTES / (s->threads > 1 ? 2 * s->threads : 1) };

	const char *word = s->precision ? s->precision : vn_facts_get(vn_recording_run(s->r), "precision");

	/* of a run that says that it is mixed, only the tensor knows */
	w.known = word && !(vn_policy_partly(word) && vn_precision_declared(s->r)) && vn_policy_from_word(word, &w.policy);
	*found = (vn_identities) { 0 };
	while (!w.st && (w.place = s->next++) < steps * each) {
		w.at = &step[w.place / each];
		w.step = w.at->number;
		w.layer = (int)(w.place % each) - 1;
		vn_identities_check(&w, !s->wanted || s->wanted(s->context, w.step, w.layer));
	}
	*place = w.place;
	vn_parts_end(&w);
	return w.st;
}

vn_status vn_identities_of(vn_recording *r, vn_identities *found, vn_error *err)
{
	const char          *config = vn_recording_plan(r) ? NULL : vn_recording_config(r);
	vn_plan             *made = config ? vn_family_plan(config, NULL) : NULL;
	vn_identities_shared s = { .r = r, .plan = made, .threads = 1 };
	int64_t              place;
	const vn_status      st = vn_identities_share(&s, found, &place, err);

	vn_plan_destroy(made);
	return st;
}

void vn_identities_join(vn_identities *found, vn_identities *more)
{
	const int    n = found->n + more->n;
	vn_identity *all = vn_alloc((size_t)n, sizeof *all);
	/* Both lists are sorted, and no place is in both. */
	for (int i = 0, a = 0, b = 0; i < n; i++)
		all[i] = b == more->n || (a < found->n && found->broken[a].place < more->broken[b].place) ? found->broken[a++]
		                                                                                          : more->broken[b++];
	free(found->broken);
	found->broken = all;
	found->n = n;
	found->checked += more->checked;
	vn_identities_free(more);
}

void vn_identities_free(vn_identities *found)
{
	free(found->broken);
	*found = (vn_identities) { 0 };
}
