/* follow.c: see follow.h. */
#include "capture/run/follow.h"

#include "capture/names/name_map.h"
#include "capture/recording/left_out.h"
#include "capture/view/batched.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status map_names(const vn_follow_source *from, const vn_plan *plan, vn_recording **r, vn_error *err)
{
	vn_like   like;
	vn_status st = VN_OK;

	vn_like_init(&like, NULL, plan, 1);
	for (int i = 0; !st && i < from->n_names; i++) {
		vn_name_map    *m = NULL;
		vn_name_map_use use = { .like = &like };
		if (!(st = vn_name_map_open(from->names[i], &m, err)))
			st = vn_name_map_apply(m, r, &use, err);
		vn_name_map_destroy(m);
	}
	return st;
}

/* Marks a tensor of the recording, under its own name. */
static void want_name(vn_follow *f, const vn_plan *plan, int step, const char *name)
{
	const int v = vn_plan_find(plan, name);
	int       i = 0;

	while (i < f->n_calls && f->call[i].number != step)
		i++;
	if (v < 0 && f->unknown++ == 0)
		snprintf(f->first, sizeof f->first, "%s", name);
	if (v < 0 || i == f->n_calls)
		return;
	bool *want = f->want + (size_t)i * (size_t)f->n_values;
	want[v] = want[vn_plan_root(plan, v)] = f->any[v] = f->any[vn_plan_root(plan, v)] = true;
}

static vn_status copy_calls(vn_follow *f, const vn_recording *r, const vn_plan *plan, vn_error *err)
{
	const int32_t *ids;
	const vn_step *step;

	f->n = vn_recording_tokens(r, &ids, NULL);
	f->n_calls = vn_recording_steps(r, &step);
	f->n_values = plan->n_values;
	if (f->n < 1 || f->n_calls < 1)
		return vn_fail(err, VN_ERR_USAGE, "--like: %s has no %s", vn_recording_path(r),
		               f->n < 1 ? "token ids" : "steps");
	f->ids = vn_alloc((size_t)f->n, sizeof *f->ids);
	f->call = vn_alloc((size_t)f->n_calls, sizeof *f->call);
	f->want = vn_alloc_zero((size_t)f->n_calls, (size_t)f->n_values + 1);
	f->any = vn_alloc_zero((size_t)f->n_values, 1);
	memcpy(f->ids, ids, (size_t)f->n * sizeof *f->ids);
	memcpy(f->call, step, (size_t)f->n_calls * sizeof *f->call);
	return VN_OK;
}

/* The calls cover the tokens one after the other, or the recording is a part of a run. */
static vn_status check_calls(const vn_follow *f, const char *path, vn_error *err)
{
	int64_t at = 0;

	for (int i = 0; i < f->n_calls; i++) {
		if (f->call[i].position != at || f->call[i].tokens < 1)
			return vn_fail(err, VN_ERR_USAGE, "--like: %s: step %d does not continue the one before it", path,
			               f->call[i].number);
		at += f->call[i].tokens;
	}
	return at == f->n ? VN_OK
	                  : vn_fail(err, VN_ERR_USAGE, "--like: %s: its steps take %lld of its %lld tokens", path,
	                            (long long)at, (long long)f->n);
}

static vn_status take_all(vn_follow *f, const vn_follow_source *from, const vn_plan *plan, const vn_recording *r,
                          vn_error *err)
{
	const vn_left_out *left;
	vn_status          st = copy_calls(f, r, plan, err);

	if (st || (st = check_calls(f, from->path, err)))
		return st;
	for (int i = 0; i < vn_recording_count(r); i++)
		want_name(f, plan, vn_recording_entry(r, i)->step, vn_recording_entry(r, i)->name);
	for (int i = 0, n = vn_recording_left_out(r, &left); i < n; i++)
		want_name(f, plan, left[i].step, left[i].name);
	for (int v = 0; v < f->n_values; v++)
		if (f->any[v])
			return VN_OK;
	return vn_fail(err, VN_ERR_USAGE,
	               "--like: %s: none of its %d names is a checkpoint of this model (first: %s): --names MAP translates "
	               "them",
	               from->path, f->unknown, f->first);
}

vn_status vn_follow_read(const vn_follow_source *from, const vn_plan *plan, vn_follow *f, vn_error *err)
{
	vn_recording *r = NULL;
	int64_t       several;
	vn_status     st;

	*f = (vn_follow) { 0 };
	if (!(st = vn_recording_open(from->path, &r, err)) && !(st = map_names(from, plan, &r, err)) &&
	    !(st = vn_batched_take(&r, from->row, "--batch-row", &several, err)))
		st = several
		         ? vn_fail(err, VN_ERR_USAGE,
		                   "--like: %s holds %" PRId64 " prompts one after another: select one with --batch-row 0 to "
		                   "%" PRId64,
		                   from->path, several, several - 1)
		         : take_all(f, from, plan, r, err);
	vn_recording_close(r);
	for (int i = 0; !st && i < f->n_calls; i++)
		f->call[i].number = i;
	return st;
}

void vn_follow_finish(vn_follow *f)
{
	VN_FREE(f->ids, f->call, f->want, f->any);
	*f = (vn_follow) { 0 };
}

vn_taps vn_follow_taps(const vn_follow *f, int i)
{
	const vn_step *c = &f->call[i];
	const int64_t  first = c->position + c->first_row;

	return (vn_taps) { .want = f->want + (size_t)i * (size_t)f->n_values,
		               .rows = VN_ROWS_RANGE,
		               .first = first,
		               .last = first + c->rows - 1 };
}
