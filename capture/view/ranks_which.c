/* ranks_which.c: checks that files are the ranks of one run, and sorts them; see ranks.h. */
#include "capture/view/ranks_internal.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static vn_status read_number(const vn_recording *r, const char *key, int64_t lowest, int64_t *x, vn_error *err)
{
	const char *text = vn_facts_get(vn_recording_run(r), key);
	*x = -1;
	if (!text || vn_text_whole(text, lowest, INT32_MAX, x))
		return VN_OK;
	char shown[40];
	snprintf(shown, sizeof shown, "%s", text);
	return vn_fail(err, VN_ERR_FORMAT, "%s: /run: %s is %s, not a whole number from %" PRId64, vn_recording_path(r),
	               key, shown, lowest);
}

vn_status vn_ranks_said(const vn_recording *r, int64_t *rank, int64_t *of, vn_error *err)
{
	const vn_status st = read_number(r, "rank", 0, rank, err);
	return st ? st : read_number(r, "world_size", 1, of, err);
}

/* Orders the ranks as given, or by the rank that each of them states. */
static vn_status in_order(vn_recording **rank, int n, bool *all_told, vn_error *err)
{
	vn_recording *place[VN_MOST_JOINED] = { NULL };
	int64_t       at[VN_MOST_JOINED], of[VN_MOST_JOINED];
	int           say = 0;
	vn_status     st = VN_OK;

	for (int i = 0; i < n && !st; i++) {
		st = vn_ranks_said(rank[i], &at[i], &of[i], err);
		say += !st && at[i] >= 0;
	}
	for (int i = 0; i < n && !st; i++) {
		const char *path = vn_recording_path(rank[i]);
		*all_told = *all_told || of[i] == n;
		if (of[i] >= 0 && of[i] != n && at[i] < 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is one of %" PRId64 " ranks, %d are given", path, of[i], n);
		if (of[i] >= 0 && of[i] != n)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 " of %" PRId64 ", %d are given", path, at[i],
			               of[i], n);
		if (say == 0)
			continue;
		if (at[i] < 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: /run does not state its rank, but other recordings do", path);
		if (at[i] >= n)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 ", and %d are given", path, at[i], n);
		if (place[at[i]])
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 ", and so is %s", path, at[i],
			               vn_recording_path(place[at[i]]));
		place[at[i]] = rank[i];
	}
	if (!st && say)
		memcpy(rank, place, (size_t)n * sizeof *rank);
	return st;
}

/* Checks that all are of one run: the same tokens in the same steps. */
static vn_status same_run(vn_recording *const *rank, int n, vn_error *err)
{
	const int32_t *ids, *ids0, *at, *at0;
	const vn_step *step, *step0;
	const int64_t  count0 = vn_recording_tokens(rank[0], &ids0, &at0);
	const int      steps0 = vn_recording_steps(rank[0], &step0);
	for (int i = 1; i < n; i++) {
		const int64_t count = vn_recording_tokens(rank[i], &ids, &at);
		bool          same = count == count0 && vn_recording_steps(rank[i], &step) == steps0 &&
		            (!count || (memcmp(ids, ids0, (size_t)count * sizeof *ids) == 0 &&
		                        memcmp(at, at0, (size_t)count * sizeof *at) == 0));
		for (int k = 0; same && k < steps0; k++)
			same = step[k].number == step0[k].number && step[k].position == step0[k].position &&
			       step[k].tokens == step0[k].tokens && step[k].first_row == step0[k].first_row &&
			       step[k].rows == step0[k].rows;
		if (!same)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: its tokens or steps differ from %s: not ranks of one run",
			               vn_recording_path(rank[i]), vn_recording_path(rank[0]));
	}
	return VN_OK;
}

/* Refuses a rank that was cut off or ran with other settings. */
static vn_status same_kind(vn_recording *const *rank, int n, bool allow_incomplete, vn_error *err)
{
	static const char *const key[] = { "engine", "precision", "kv" };
	for (int i = 0; i < n; i++) {
		const char *path = vn_recording_path(rank[i]), *mine = vn_recording_family(rank[i]),
				   *first = vn_recording_family(rank[0]);
		if (!vn_recording_complete(rank[i]) && !allow_incomplete)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s: is incomplete: its run was interrupted or is still running (--allow incomplete)", path);
		if ((mine && first && strcmp(mine, first) != 0))
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is of a %.40s, %s of a %.40s: not ranks of one run", path, mine,
			               vn_recording_path(rank[0]), first);
		for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
			const char *a = vn_facts_get(vn_recording_run(rank[0]), key[k]),
					   *b = vn_facts_get(vn_recording_run(rank[i]), key[k]);
			if ((a || b) && (!a || !b || strcmp(a, b) != 0))
				return vn_fail(err, VN_ERR_MISMATCH, "%s: %s %.40s, %s %.40s: not ranks of one run", path, key[k],
				               b ? b : "unknown", vn_recording_path(rank[0]), a ? a : "unknown");
		}
	}
	return VN_OK;
}

vn_status vn_ranks_which(vn_recording **rank, int n, vn_ranks_use *use, vn_error *err)
{
	vn_status st = in_order(rank, n, &use->all_told, err);
	st = st ? st : same_kind(rank, n, use->allow_incomplete, err);
	return st ? st : same_run(rank, n, err);
}
