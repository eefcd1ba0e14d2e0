/* by_itself.c: see by_itself.h. */
#include "compare/chapters/by_itself.h"
#include "compare/floor/precision.h"
#include "compare/match/trusted.h"
#include "compare/metrics/team.h"

#include "capture/recording/echo.h"
#include "capture/recording/garbage.h"
#include "capture/show/identities.h"
#include "libref/family/family.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- each file alone ------------------------------------------------------------- */

enum { SAID_ALONE = 8 };

typedef struct divergences {
	const vn_checkpoints *all;
	const vn_localised   *localised;
} divergences;

static bool has_divergence(void *context, int step, int layer)
{
	const divergences   *d = context;
	const vn_checkpoint *first = d->localised->first >= 0 ? &d->all->of[d->localised->first] : NULL;
	if (!first || (first->step == step && first->layer == layer))
		return true;
	for (int i = 0; i < d->localised->n_origins && i < SAID_ALONE; i++)
		if (d->all->of[d->localised->origins[i]].step == step && d->all->of[d->localised->origins[i]].layer == layer)
			return true;
	return false;
}

/* What several threads find in one recording. The failure kept is that of the first layer that
 * failed. */
typedef struct recording_check {
	vn_identities_shared shared;
	pthread_mutex_t      lock;
	vn_identities        found;
	int64_t              failed_at;
	vn_status            st;
	vn_error             why;
} recording_check;

static void take_share(recording_check *s)
{
	vn_identities   found;
	vn_error        why = { "" };
	int64_t         place;
	const vn_status st = vn_identities_share(&s->shared, &found, &place, &why);

	pthread_mutex_lock(&s->lock);
	if (st)
		vn_identities_free(&found);
	else
		vn_identities_join(&s->found, &found);
	if (st && (!s->st || place < s->failed_at)) {
		s->st = st;
		s->why = why;
		s->failed_at = place;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Takes a share of each recording that several threads may read. */
static void take_shares(void *both, int thread)
{
	(void)thread;
	for (recording_check *s = both; s < (recording_check *)both + 2; s++)
		if (s->shared.threads > 1)
			take_share(s);
}

static vn_status tell_one_side(vn_lines *warnings, const char *who, const recording_check *s, vn_error *err)
{
	const vn_identities *x = &s->found;
	if (s->st && !vn_status_ends_job(s->st)) /* an unreadable tensor is reported where it is compared */
		vn_lines_add(warnings, "checks of %s alone could not all be made: %s", who, s->why.text);
	else if (s->st)
		*err = s->why;
	for (int i = 0; !s->st && i < x->n && i < SAID_ALONE; i++)
		vn_lines_add(warnings, "check of %s alone: %s%.0d%s%s", who, x->broken[i].step ? "step." : "",
		             x->broken[i].step, x->broken[i].step ? "/" : "", x->broken[i].words);
	if (!s->st && x->n > SAID_ALONE)
		vn_lines_add(warnings, "check of %s alone: %d more checks fail (vernier show --check)", who, x->n - SAID_ALONE);
	return vn_status_ends_job(s->st) ? s->st : VN_OK;
}

vn_status vn_chapter_check_alone(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                 vn_lines *warnings, vn_error *err)
{
	divergences     d = { all, localised };
	vn_recording   *r[2] = { o->ref, o->cand };
	recording_check both[2];
	vn_status       st;
	if (vn_trusts(o))
		return VN_OK; /* that check would read every number */
	/* without a plan: the sums of the stream as the config's family has them */
	const char *config = o->plan                             ? NULL
	                     : vn_recording_config(r[0]) != NULL ? vn_recording_config(r[0])
	                                                         : vn_recording_config(r[1]);
	vn_plan    *made = config ? vn_family_plan(config, NULL) : NULL;
	const int   wanted = o->request.options->threads ? o->request.options->threads : vn_team_size();
	int         most = 1;
	for (int i = 0; i < 2; i++) {
		const int n = vn_recording_share(r[i]) ? wanted : 1;
		both[i] = (recording_check) { .shared = { r[i], made ? made : o->plan, has_divergence, &d, n,
			                                      i ? vn_precision_of_candidate(o) : NULL, 0 },
			                          .lock = PTHREAD_MUTEX_INITIALIZER };
		most = n > most ? n : most;
	}
	vn_team_run(most, take_shares, both);
	for (int i = 0; i < 2; i++) /* may start processes (vn_recording_direct) */
		if (both[i].shared.threads == 1)
			take_share(&both[i]);
	st = tell_one_side(warnings, "the reference", &both[0], err);
	st = st ? st : tell_one_side(warnings, "the candidate", &both[1], err);
	for (int i = 0; i < 2; i++)
		vn_identities_free(&both[i].found);
	vn_plan_destroy(made);
	return st;
}

vn_status vn_chapter_find_overwritten(const vn_opened *o, vn_checkpoints *all, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < all->n && !st; i++) {
		vn_checkpoint  *p = &all->of[i];
		const vn_entry *e = p->m.n ? vn_recording_entry(o->cand, p->cand) : NULL;
		int64_t         differing = 0, first;
		if (e && e->again)
			st = vn_identity_again(o->cand, p->cand, &differing, &first, err);
		p->overwritten = differing > 0 ? e->again : NULL;
	}
	return st;
}

/* ---- logits that echo their input ------------------------------------------------- */

/* Logits that agree echo as often as the reference's. */
static bool logits_fail(const vn_checkpoints *all)
{
	for (int i = 0; i < all->n; i++)
		if (all->of[i].scores && all->of[i].fails)
			return true;
	return false;
}

typedef struct echoes {
	vn_recording *r[2];
	vn_echo       e[2];
	vn_status     st[2];
	vn_error      why[2];
} echoes;

static void echo_of_side(void *ctx, int i)
{
	echoes *x = ctx;
	x->st[i] = vn_echo_of(x->r[i], &x->e[i], &x->why[i]);
}

/* Tied weights that were never trained echo without a mistake, so the reference says how
 * often is too often. */
vn_status vn_chapter_check_echo(const vn_opened *o, const vn_checkpoints *all, vn_lines *warnings, vn_error *err)
{
	echoes         x = { .r = { o->ref, o->cand } };
	const vn_echo *e = x.e;

	if (!logits_fail(all))
		return VN_OK;
	const bool direct = vn_recording_direct(x.r[0]) && vn_recording_direct(x.r[1]);
	vn_team_each(direct ? o->request.options->threads : 1, 2, echo_of_side, &x);
	for (int i = 0; i < 2; i++)
		if (x.st[i]) /* what cannot be read was judged before */
			return vn_status_ends_job(x.st[i]) ? vn_fail(err, x.st[i], "%s", x.why[i].text) : VN_OK;
	if (e[0].rows == 0 || e[1].rows == 0)
		return VN_OK;
	const double ref = (double)e[0].peaks / (double)e[0].rows, cand = (double)e[1].peaks / (double)e[1].rows;
	const double repeats = (double)e[1].repeats / (double)e[1].rows;
	if (vn_echoes(cand, fmax(ref, repeats), e[1].rows))
		vn_lines_add(warnings,
		             "the candidate's logits peak at their input token in %.3g %% of %lld rows; the reference's in "
		             "%.3g %%: the tensor that reaches the candidate's output head resembles the embedding",
		             100 * cand, (long long)e[1].rows, 100 * ref);
	return VN_OK;
}

/* ---- garbage ------------------------------------------------------------------------ */

/* Do both recordings have the same tokens, and the same texts of these tokens where both record
 * texts? */
static bool same_text(const vn_opened *o)
{
	const int32_t *a, *b;
	const int64_t  n = vn_recording_tokens(o->ref, &a, NULL);
	char *const   *ta = vn_recording_token_text(o->ref), *const *tb = vn_recording_token_text(o->cand);
	bool           same = n == vn_recording_tokens(o->cand, &b, NULL);

	for (int64_t i = 0; i < n && same; i++)
		same = a[i] == b[i] && (!ta || !tb || strcmp(ta[i], tb[i]) == 0);
	return same;
}

/* Tokens that the engine did not take from these logits: another row, or another step's. Where the
 * recording does not say how they were chosen, most must be the highest. */
static vn_status note_unchosen(const vn_opened *o, vn_lines *notes, vn_error *err)
{
	const bool      said = vn_facts_get(vn_recording_run(o->cand), "decoding") != NULL;
	int64_t         differ, of;
	const vn_status st = vn_garbage_unchosen(o->cand, &differ, &of, err);

	if (!st && differ && (said || 2 * differ < of))
		vn_lines_add(notes,
		             "%lld of the candidate's %lld decoded tokens are not those with its highest logit: chosen "
		             "from other logits, or not greedily",
		             (long long)differ, (long long)of);
	return st;
}

/* With equal texts, logits that agree choose what the reference chooses. */
vn_status vn_chapter_check_garbage(const vn_opened *o, const vn_checkpoints *all, vn_remarks *remarks, vn_error *err)
{
	vn_garbage ref, cand;
	vn_error   why = { "" };
	char       words[VN_GARBAGE_WORDS];

	vn_status st = vn_trusts(o) ? VN_OK : note_unchosen(o, &remarks->notes, &why);
	if (!st && (strcmp(vn_recording_provenance(o->ref), "synthetic") == 0 || (!logits_fail(all) && same_text(o))))
		return VN_OK;
	st = st ? st : vn_garbage_of(o->ref, &ref, &why);
	st = st ? st : vn_garbage_of(o->cand, &cand, &why);
	if (st) /* what cannot be read was judged before */
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	for (vn_garbage_sign i = 0; i < VN_N_GARBAGE_SIGNS; i++)
		if (vn_garbage_shows(&cand, &ref, i, words))
			vn_lines_add(&remarks->warnings, "the candidate's %s", words);
	return VN_OK;
}
