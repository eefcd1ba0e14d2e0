/* sides.c: see sides.h. */
#include "compare/match/sides.h"

#include "compare/text/output.h"

#include "capture/view/batched.h"
#include "capture/names/name_map.h"
#include "capture/view/paged.h"
#include "capture/view/ranks.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
	vn_comparison *c;
	const char    *who;
	vn_like        like;
	char           file[300]; /* " (rank3.h5)", of several */
} side;

static void say(void *context, const char *words)
{
	const side *s = context;
	vn_lines_once(&s->c->notes, "", "times", "%s: %s", s->who, words);
}

static vn_status map_names(side *s, const vn_name_map *m, bool asked, vn_recording **r, vn_error *err)
{
	vn_map_use use = { .like = &s->like, .say = say, .context = s };
	const vn_status st = vn_name_map_apply(m, r, &use, err);
	if (st)
		return st;
	if (use.mapped)
		vn_lines_once(&s->c->notes, s->file, "ranks", "%s: %d of %d tensors by %s; %d as they are, %d steps in between left out", s->who, use.mapped - use.spare,
		             use.mapped + use.ignored + use.left, m->name ? m->name : m->path, use.left, use.ignored + use.spare);
	else if (asked && use.ignored) /* tensors of ours beside a few of the engine's own */
		vn_lines_once(&s->c->notes, s->file, "ranks", "%s: %d of %d tensors left out by %s; %d as they are", s->who, use.ignored, use.ignored + use.left,
		             m->name ? m->name : m->path, use.left);
	else if (asked)
		return vn_fail(err, VN_ERR_MISMATCH, "%s: no rule of %s matches any of its %d names (first: %s)", vn_recording_path(*r), m->path,
		               vn_recording_count(*r), vn_recording_count(*r) ? vn_recording_entry(*r, 0)->name : "none");
	return VN_OK;
}

/* A name in a layer that is no point of ours may be several of ours in one product. */
static bool may_be_fused(const vn_recording *r)
{
	vn_point p;
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (vn_name_layer(e->name) >= 0 && !vn_point_from_name(strchr(e->name, '.') + 1, &p))
			return true;
	}
	return false;
}

static vn_status map_all(side *s, const char *const *names, int n, vn_recording **r, vn_error *err)
{
	vn_name_map *m;
	vn_status st = VN_OK;
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

/* Rows of a batch, or prompts one behind the other, which the only row of a batch may hold as well. */
static vn_status take_row(side *s, int64_t row, vn_recording **r, const char *option, vn_error *err)
{
	const vn_status st = vn_recording_batch(*r) == 1 ? vn_batched_row(r, 0, err) : VN_OK;
	const int64_t rows = st ? 0 : vn_recording_batch(*r), prompts = st ? 0 : vn_batched_count(*r);
	if (st)
		return st;
	if (prompts == 0)
		return row <= 0 ? VN_OK : vn_fail(err, VN_ERR_USAGE, "%s: %s %" PRId64 ", and it is of one prompt", vn_recording_path(*r), option, row);
	if (row >= 0)
		return vn_batched_row(r, row, err);
	if (rows)
		return vn_fail(err, VN_ERR_USAGE, "%s: holds a batch of %" PRId64 " prompts: %s 0 to %" PRId64 " says which is compared",
		               vn_recording_path(*r), rows, option, rows - 1);
	vn_lines_once(&s->c->notes, s->file, "ranks", "%s: %" PRId64 " prompts one behind the other, compared as they are; %s 0 to %" PRId64 " takes one of them", s->who,
	             prompts, option, prompts - 1);
	return VN_OK;
}

static vn_status gather_pages(side *s, vn_recording **r, vn_error *err)
{
	int n;
	const vn_status st = vn_paged_gather(r, &n, err);
	if (!st && n)
		vn_lines_once(&s->c->notes, s->file, "ranks", "%s: %d cache%s gathered from %s blocks", s->who, n, n == 1 ? "" : "s", n == 1 ? "its" : "their");
	return st;
}

/* One file as a checkpoint file. */
static vn_status settle(side *s, const char *const *names, int n, int64_t row, vn_recording **r, const char *option, vn_error *err)
{
	vn_status st = map_all(s, names, n, r, err);
	if (!st && !(st = take_row(s, row, r, option, err)))
		st = gather_pages(s, r, err);
	return st;
}

static vn_status join_ranks(side *s, vn_recording **rank, int n, vn_error *err)
{
	vn_ranks_use use = { .like = &s->like, .allow_replicas = s->c->options->allow & VN_ALLOW_REPLICAS,
	                     .allow_incomplete = s->c->options->allow & VN_ALLOW_INCOMPLETE, .say = say, .context = s };
	const vn_status st = vn_ranks_join(rank, n, &use, &s->c->cand, err);
	if (!st && !use.all_told)
		vn_lines_add(&s->c->warnings, "candidate: no rank says how many there were (world_size), and no tensor tells: the %d that are given are taken for all", n);
	if (!st)
		vn_lines_add(&s->c->notes, "candidate: %d ranks; %d tensors put together, %d added, %d the same on all", n, use.placed, use.summed, use.same);
	return st;
}

/* One file as two ranks would have all its replicas agree. */
static vn_status check_twice(const vn_sides *s, vn_error *err)
{
	for (int i = 0; i < s->n_cand; i++)
		for (int k = 0; k < i; k++)
			if (vn_same_file(s->cand[k], s->cand[i]))
				return vn_fail(err, VN_ERR_USAGE, "%s: is given twice, as rank %d and as rank %d", s->cand[i], k, i);
	return VN_OK;
}

/* All of them at once: opening is reading attributes, and every processor can. */
static vn_status open_all(const vn_sides *s, vn_comparison *c, vn_recording **rank, vn_error *err)
{
	const int n = 1 + s->n_cand + (s->floor != NULL);
	const char    *path[2 + VN_MOST_RANKS];
	vn_recording  *r[2 + VN_MOST_RANKS];
	path[0] = s->ref;
	for (int i = 0; i < s->n_cand; i++)
		path[1 + i] = s->cand[i];
	path[n - 1] = s->floor ? s->floor : path[n - 1];
	const vn_status st = vn_recording_open_all(path, n, r, err);
	if (st)
		return st;
	c->ref = r[0];
	memcpy(rank, r + 1, (size_t)s->n_cand * sizeof *rank);
	c->floor = s->floor ? r[n - 1] : NULL;
	return VN_OK;
}

vn_status vn_sides_open(const vn_sides *s, vn_comparison *c, vn_error *err)
{
	vn_recording **rank = calloc((size_t)s->n_cand, sizeof *rank);
	vn_plan   *own = NULL;
	side       left = { .c = c, .who = "reference" }, right = { .c = c, .who = "candidate" };
	vn_status  st = rank ? check_twice(s, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for %d recordings", s->n_cand);

	if (!st)
		st = open_all(s, c, rank, err);
	if (st)
		goto done;
	const vn_plan *plan = vn_recording_plan(c->ref) ? vn_recording_plan(c->ref) : vn_recording_plan(rank[0]);
	if (!plan) {
		const char *config = vn_recording_config(c->ref) ? vn_recording_config(c->ref) : vn_recording_config(rank[0]);
		plan = own = config ? vn_contract_plan(config) : NULL;
	}
	vn_like_init(&left.like, rank[0], plan, 1);
	if ((st = settle(&left, s->ref_names, s->n_ref_names, s->ref_batch_row, &c->ref, "--ref-batch-row", err)))
		goto done;
	vn_like_init(&right.like, c->ref, plan, s->n_cand);
	for (int i = 0; !st && i < s->n_cand; i++) {
		if (s->n_cand > 1)
			snprintf(right.file, sizeof right.file, " (%.290s)", s->cand[i]);
		st = settle(&right, s->names, s->n_names, s->batch_row, &rank[i], "--batch-row", err);
	}
	if (st)
		goto done;
	if (s->n_cand > 1) {
		st = join_ranks(&right, rank, s->n_cand, err);
	} else {
		c->cand = rank[0];
	}
	free(rank);
	rank = NULL;
done:
	for (int i = 0; rank && i < s->n_cand; i++)
		vn_recording_close(rank[i]);
	free(rank);
	vn_plan_destroy(own);
	return st;
}
