/* sides.c: see sides.h. */
#include "compare/match/sides.h"
#include "compare/match/trusted.h"
#include "libref/family/family.h"

#include "capture/file/output.h"

#include "capture/view/batched.h"
#include "capture/view/calls.h"
#include "capture/names/name_map.h"
#include "capture/view/paged.h"
#include "capture/view/ranks.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct opened_side {
	const vn_compare_options *options;
	vn_remarks               *remarks;
	const char               *who;
	vn_like                   like;
	char                      file[300];  /* " (rank3.h5)" when there are several files */
	const char               *row_option; /* --batch-row of this side */
} opened_side;

static void add_note(void *context, const char *words)
{
	const opened_side *s = context;
	vn_lines_once(&s->remarks->notes, "", "times", "%s: %s", s->who, words);
}

static vn_status map_names(opened_side *s, const vn_name_map *m, bool asked, vn_recording **r, vn_error *err)
{
	vn_name_map_use use = { .like = &s->like, .say = add_note, .context = s };
	const vn_status st = vn_name_map_apply(m, r, &use, err);
	if (st)
		return st;
	if (use.mapped)
		vn_lines_once(&s->remarks->notes, s->file, "ranks",
		              "%s: %s translates the names of %d of %d tensors, keeps %d, and leaves out %d intermediate ones",
		              s->who, m->name ? m->name : m->path, use.mapped - use.spare, use.mapped + use.ignored + use.left,
		              use.left, use.ignored + use.spare);
	else if (asked && use.ignored) /* standard tensors next to a few of the engine's own */
		vn_lines_once(&s->remarks->notes, s->file, "ranks",
		              "%s: %s leaves out %d of %d tensors and keeps the names of %d", s->who,
		              m->name ? m->name : m->path, use.ignored, use.ignored + use.left, use.left);
	else if (asked)
		return vn_fail(err, VN_ERR_MISMATCH, "%s: no rule of %s matches any of its %d names (first: %s)",
		               vn_recording_path(*r), m->path, vn_recording_count(*r),
		               vn_recording_count(*r) ? vn_recording_entry(*r, 0)->name : "none");
	return VN_OK;
}

/* Whether an unknown name in a layer may be one product that holds several checkpoints. */
static bool may_be_fused(const vn_recording *r)
{
	vn_point p;
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (vn_name_layer(e->name) >= 0 && !vn_point_from_name(vn_name_in_layer(e->name), &p))
			return true;
	}
	return false;
}

static vn_status map_all(opened_side *s, const char *const *names, int n, vn_recording **r, vn_error *err)
{
	vn_name_map *m;
	vn_status    st = VN_OK;
	for (int i = 0; !st && i <= n; i++) {
		const bool asked = i < n;
		if (!asked && !may_be_fused(*r))
			break;
		if (!(st = vn_name_map_open(asked ? names[i] : "fused", &m, err)))
			st = map_names(s, m, asked, r, err);
		vn_name_map_destroy(m);
	}
	return st;
}

/* Takes a row of a batch or one of several packed prompts. */
static vn_status take_row(opened_side *s, int64_t row, vn_recording **r, vn_error *err)
{
	int64_t         several;
	const vn_status st = vn_batched_take(r, row, s->row_option, &several, err);
	if (!st && several)
		vn_lines_once(&s->remarks->notes, s->file, "ranks",
		              "%s: %" PRId64 " prompts one after another, compared as they are; %s 0 to %" PRId64
		              " takes one of them",
		              s->who, several, s->row_option, several - 1);
	return st;
}

static vn_status gather_pages(opened_side *s, vn_recording **r, vn_error *err)
{
	int             n;
	const vn_status st = vn_paged_gather(r, &n, err);
	if (!st && n)
		vn_lines_once(&s->remarks->notes, s->file, "ranks", "%s: %d cache%s gathered from %s blocks", s->who, n,
		              n == 1 ? "" : "s", n == 1 ? "its" : "their");
	return st;
}

/* Prepares one recording: maps its names, takes the row of the batch and gathers its pages. The
 * plan of a run does not say which axis is the prompt: all prompts are compared together. */
static vn_status prepare_recording(opened_side *s, const char *const *names, int n, int64_t row, vn_recording **r,
                                   vn_error *err)
{
	vn_status st = map_all(s, names, n, r, err);
	if (vn_recording_run_plan(*r) && row < 0)
		return st;
	if (!st && !(st = take_row(s, row, r, err)))
		st = gather_pages(s, r, err);
	return st;
}

static vn_status join_ranks(opened_side *s, vn_recording **rank, int n, vn_recording **joined, vn_error *err)
{
	vn_ranks_use    use = { .like = &s->like,
		                    .allow_replicas = s->options->allow & VN_ALLOW_REPLICAS,
		                    .allow_incomplete = s->options->allow & VN_ALLOW_INCOMPLETE,
		                    .say = add_note,
		                    .context = s };
	const vn_status st = vn_ranks_join(rank, n, &use, joined, err);
	if (!st && !use.all_told)
		vn_lines_add(
			&s->remarks->warnings,
			"candidate: no recording states the number of ranks (world_size), and no tensor implies it: the %d given "
			"are taken to be all",
			n);
	const bool allowed = s->options->allow & VN_ALLOW_RANKS;
	if (!st && *use.not_gathered)
		vn_lines_add(allowed ? &s->remarks->notes : &s->remarks->warnings,
		             "candidate: %s: every rank has a shard of the vocabulary, and no rank has all of it. vernier "
		             "joined them; whether the engine gathers them before it samples is not recorded%s",
		             use.not_gathered, allowed ? ": allowed (ranks)" : ": outside (--allow ranks, if it does)");
	if (!st)
		vn_lines_add(&s->remarks->notes, "candidate: %d ranks; %d tensors joined, %d summed, %d equal on all ranks", n,
		             use.placed, use.summed, use.same);
	return st;
}

/* One file given as two ranks would make all its replicas agree. */
static vn_status check_twice(const vn_sides *s, vn_error *err)
{
	for (int i = 0; i < s->n_cand; i++)
		for (int k = 0; k < i; k++)
			if (vn_same_file(s->cand[k], s->cand[i]))
				return vn_fail(err, VN_ERR_USAGE, "%s: given twice, as rank %d and as rank %d", s->cand[i], k, i);
	return VN_OK;
}

/* Opens all files at once: opening reads attributes, which runs in parallel. */
static vn_status open_all(const vn_sides *s, vn_opened *o, vn_recording **rank, vn_error *err)
{
	const int     n = 1 + s->n_cand + (s->floor != NULL);
	const char   *path[2 + VN_MOST_RANKS];
	vn_recording *r[2 + VN_MOST_RANKS];
	vn_status     st;
	path[0] = s->ref;
	for (int i = 0; i < s->n_cand; i++)
		path[1 + i] = s->cand[i];
	path[n - 1] = s->floor ? s->floor : path[n - 1];
	if (s->opened[0]) {
		memcpy(r, s->opened, sizeof s->opened);
		st = s->floor ? vn_recording_open(s->floor, &r[n - 1], err) : VN_OK;
	} else {
		st = vn_recording_open_all(path, n, r, err);
	}
	if (st) {
		for (int i = 0; i < 2; i++)
			vn_recording_close(s->opened[i]);
		return st;
	}
	o->ref = r[0];
	o->floor = s->floor ? r[n - 1] : NULL;
	memcpy(rank, r + 1, (size_t)s->n_cand * sizeof *rank);
	for (int i = 0; i < n; i++) {
		if (o->request.options->allow & VN_ALLOW_DIGEST)
			vn_recording_allow_damage(r[i]);
		if (!vn_trusts(o))
			vn_recording_drop_stats(r[i]);
	}
	return VN_OK;
}

/* Writes "calls of 10 + 7", the token counts of a side's steps. */
static void say_steps(const vn_recording *r, const vn_call *call, char *text, size_t room)
{
	enum { SAID = 4 };
	const vn_step *s;
	int            first, count;
	vn_recording_steps(r, &s);
	vn_calls_steps(r, call, &first, &count);
	snprintf(text, room, count == 1 ? "one call" : "calls of ");
	for (int i = 0; count > 1 && i < count && i < SAID; i++)
		vn_text_add(text, room, "%s%" PRId64, i ? " + " : "", s[first + i].tokens);
	if (count > SAID)
		vn_text_add(text, room, " + ... (%d)", count);
}

/* Warns of steps with one number but different tokens: their tensors will have different shapes. */
static void say_apart(const vn_opened *o, vn_lines *notes)
{
	const vn_step *s;
	const int      n = vn_recording_steps(o->ref, &s);
	for (int i = 0; i < n; i++) {
		const vn_step *d = vn_recording_step(o->cand, s[i].number);
		if (!d || (d->position == s[i].position && d->tokens == s[i].tokens))
			continue;
		vn_lines_add(notes,
		             "calls: step %d has %" PRId64 " token%s from position %" PRId64 " in the reference, %" PRId64
		             " from position %" PRId64 " in the candidate: "
		             "calls are joined only if the steps of both recordings hold every token up to the same last one",
		             d->number, s[i].tokens, s[i].tokens == 1 ? "" : "s", s[i].position, d->tokens, d->position);
		return;
	}
}

/* Notes which calls are compared as one, and how each side divided them. */
static void say_calls(const vn_opened *o, vn_lines *notes, const vn_call *call, int n)
{
	enum { SAID = 4 };
	int  said = 0, first, count, other;
	char ref[64], cand[64];
	for (int i = 0; i < n; i++) {
		vn_calls_steps(o->ref, &call[i], &first, &count);
		vn_calls_steps(o->cand, &call[i], &first, &other);
		if ((count == 1 && other == 1) || said++ >= SAID)
			continue;
		say_steps(o->ref, &call[i], ref, sizeof ref);
		say_steps(o->cand, &call[i], cand, sizeof cand);
		vn_lines_add(notes,
		             "calls: tokens %" PRId64 "-%" PRId64
		             " are %s in the reference, %s in the candidate: compared as one step, %d",
		             call[i].position, call[i].position + call[i].tokens - 1, ref, cand, call[i].number);
	}
	if (said > SAID)
		vn_lines_add(notes, "calls: %d more steps are joined like this", said - SAID);
}

/* Joins a prompt that one side ran in chunks, and tokens that one side decoded and the
 * other read at once. */
static vn_status join_calls(vn_opened *o, vn_lines *notes, vn_error *err)
{
	vn_recording           **both[] = { &o->ref, &o->cand, &o->floor };
	static const char *const who[] = { "reference", "candidate", "floor" };
	VN_FREED vn_call        *call = NULL;
	const int                n = vn_calls_common(o->ref, o->cand, &call);
	int                      left;
	char                     one[VN_NAME_MAX];
	vn_status                st = VN_OK;
	if (n)
		say_calls(o, notes, call, n);
	else
		say_apart(o, notes);
	for (int k = 0; !st && k < 3 && n; k++) {
		if (!*both[k] || !vn_calls_fit(*both[k], call, n) || (st = vn_calls_join(both[k], call, n, &left, one, err)) ||
		    !left)
			continue;
		vn_lines_add(notes, "calls: %d tensor%s of the %s (first: %s) cannot be joined and %s left out", left,
		             left == 1 ? "" : "s", who[k], one, left == 1 ? "is" : "are");
	}
	return st;
}

static vn_status open_replayed(const vn_sides *s, vn_opened *o, const vn_recording *cand, vn_error *err)
{
	const vn_status st = vn_replayed_file_open(s->replayed, o->ref, cand, &o->replayed, err);

	if (!st && o->request.options->allow & VN_ALLOW_DIGEST)
		vn_recording_allow_damage(o->replayed->recording);
	return st;
}

vn_status vn_sides_open(const vn_sides *s, vn_opened *o, vn_remarks *remarks, vn_error *err)
{
	vn_recording *rank[VN_MOST_RANKS] = { NULL };
	vn_plan      *own = NULL;
	int           ours = s->n_cand; /* ranks that this function closes */
	opened_side   left = {
		  .options = o->request.options, .remarks = remarks, .who = "reference", .row_option = "--ref-batch-row"
	};
	opened_side right = {
		.options = o->request.options, .remarks = remarks, .who = "candidate", .row_option = "--batch-row"
	};
	vn_status st = check_twice(s, err);

	if (st || (st = open_all(s, o, rank, err)))
		goto done;
	if (s->replayed && (st = open_replayed(s, o, rank[0], err)))
		goto done;
	const vn_plan *plan = vn_recording_plan(o->ref) ? vn_recording_plan(o->ref) : vn_recording_plan(rank[0]);
	if (!plan) {
		const char *config = vn_recording_config(o->ref) ? vn_recording_config(o->ref) : vn_recording_config(rank[0]);
		plan = own = config ? vn_family_plan(config, NULL) : NULL;
	}
	vn_like_init(&left.like, rank[0], plan, 1);
	if ((st = prepare_recording(&left, s->ref_names, s->n_ref_names, s->ref_batch_row, &o->ref, err)))
		goto done;
	vn_like_init(&right.like, o->ref, plan, s->n_cand);
	for (int i = 0; !st && i < s->n_cand; i++) {
		if (s->n_cand > 1)
			snprintf(right.file, sizeof right.file, " (%.290s)", s->cand[i]);
		st = prepare_recording(&right, s->names, s->n_names, s->batch_row, &rank[i], err);
	}
	if (st)
		goto done;
	ours = 0;
	if (s->n_cand > 1) {
		st = join_ranks(&right, rank, s->n_cand, &o->cand, err);
	} else {
		o->cand = rank[0];
	}
	st = st ? st : join_calls(o, &remarks->notes, err);
done:
	for (int i = 0; i < ours; i++)
		vn_recording_close(rank[i]);
	vn_plan_destroy(own);
	return st;
}
