/* show_check.c: `vernier show FILE --check`: what can be known of a recording without another. */
#include "capture/recording/verify.h"
#include "capture/show/identities.h"
#include "capture/show/show.h"
#include "capture/recording/steps.h"

#include "libref/base/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct digests {
	int checked, wrong;
} digests;

static void print_finding(const char *what, int step, const char *words)
{
	printf("%-7s ", what);
	if (step)
		printf("step.%d/", step);
	vn_show_put(words);
	putchar('\n');
}

static vn_status check_digests(vn_recording *r, digests *found, vn_error *err)
{
	const int   n = vn_recording_count(r);
	vn_digest  *now = calloc((size_t)n + 1, sizeof *now);
	vn_progress bar = { 0 };
	vn_status   st = now ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d digests", n);

	vn_progress_start(&bar, "tensor", n);
	for (int i = 0; !st && i < n; i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		vn_progress_at(&bar, i);
		if (e->same_as >= 0 || !*e->digest.hex)
			continue;
		st = vn_recording_found(r, i, &now[i], err);
		vn_recording_forget(r);
		found->checked++;
	}
	vn_progress_stop(&bar);
	for (int i = 0; !st && i < n; i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		char            words[VN_NAME_MAX + 160];
		if (!*now[i].hex)
			continue;
		found->wrong++;
		snprintf(words, sizeof words, "%s: the numbers are not those that were written: their digest is %s, the file says %s", e->name,
		         now[i].hex, e->digest.hex);
		print_finding("DAMAGED", e->step, words);
	}
	free(now);
	return st;
}

/* Another recorder may have summed in float32, and in another order. */
static bool near(double said, double found, double room)
{
	return fabs(said - found) <= room || (isnan(said) && isnan(found));
}

static bool statistics_hold(const vn_stats *said, const vn_stats *found)
{
	const double room = 1e-3 * found->rms;
	return said->nan == found->nan && said->inf == found->inf && near(said->min, found->min, 1e-6 * fabs(found->min))
	    && near(said->max, found->max, 1e-6 * fabs(found->max)) && near(said->absmax, found->absmax, 1e-6 * found->absmax)
	    && near(said->mean, found->mean, room) && near(said->rms, found->rms, room);
}

/* What `show` prints of a tensor without reading it. */
static vn_status check_statistics(vn_recording *r, int *wrong, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const void     *data;
		char            words[VN_NAME_MAX + 200];
		if (e->same_as >= 0 || !e->has_stats || (st = vn_recording_data(r, i, &data, err)))
			continue;
		const vn_stats found = vn_stats_of(data, e->dtype, (size_t)vn_shape_count(&e->shape));
		vn_recording_release(r, i);
		vn_recording_forget(r);
		if (statistics_hold(&e->stats, &found))
			continue;
		snprintf(words, sizeof words, "%s: its statistics are not those of its numbers: min %.6g, max %.6g, rms %.6g, %" PRId64 " NaN; the file says "
		         "%.6g, %.6g, %.6g, %" PRId64, e->name, found.min, found.max, found.rms, found.nan, e->stats.min, e->stats.max, e->stats.rms, e->stats.nan);
		print_finding("BROKEN", e->step, words);
		++*wrong;
	}
	return st;
}

/* How many of the two do not hold: that they follow each other, and that they are all there. */
static vn_status check_steps(const vn_recording *r, int *wrong, vn_error *err)
{
	char    words[VN_STEPS_WORDS];
	int64_t missing;
	if (vn_steps_disorder(r, words)) {
		print_finding("BROKEN", 0, words);
		++*wrong;
	}
	const vn_status st = vn_steps_gap(&r, 1, &missing, words, err);
	if (!st && missing) {
		char line[VN_STEPS_WORDS + 32];
		snprintf(line, sizeof line, "no step has %s", words);
		print_finding("BROKEN", 0, line);
		++*wrong;
	}
	return st;
}

/* What is labelled by tokens has the rows of its step. */
static int check_rows(const vn_recording *r)
{
	int wrong = 0;
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		char shape[VN_SHAPE_TEXT], words[VN_NAME_MAX + 320];
		if (!e->rows_off)
			continue;
		snprintf(words, sizeof words, "%s: axes '%s' of %s, and rows of its step: %" PRId64, e->name, e->axes, vn_shape_text(&e->shape, shape),
		         vn_recording_step(r, e->step)->rows);
		print_finding("BROKEN", e->step, words);
		wrong++;
	}
	return wrong;
}

int vn_show_check(vn_recording *r, vn_error *err)
{
	digests       d = { 0 };
	vn_identities x = { 0 };
	int           steps = 0, statistics = 0;
	vn_status     st = check_digests(r, &d, err);

	if (!st)
		st = check_statistics(r, &statistics, err);
	if (!st)
		st = vn_identities_of(r, NULL, NULL, &x, err);
	if (!st)
		st = check_steps(r, &steps, err);
	for (int i = 0; !st && i < x.n; i++)
		print_finding("BROKEN", x.broken[i].step, x.broken[i].words);
	if (!st && x.checked + d.checked == 0)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s: holds nothing that could be checked by itself", vn_recording_path(r));
	if (!st)
		printf("%d identities looked at, %d broken; %d digests, %d wrong\n", x.checked, x.n, d.checked, d.wrong);
	const int rows = st ? 0 : check_rows(r);
	const bool bad = rows > 0 || x.n > 0 || d.wrong > 0 || steps > 0 || statistics > 0;
	vn_identities_free(&x);
	return st ? 2 : bad;
}
