/* show_check.c: `vernier show FILE --check`: checks that need no other recording. */
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

/* Of one tensor. */
typedef struct numbers {
	vn_digest digest; /* where it is not the one in the file */
	vn_stats  stats;  /* where they are not those in the file */
	bool      broken;
} numbers;

/* Reads the tensor once. The caller allows damage. */
static vn_status check_tensor(vn_recording *r, int i, numbers *found, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const void     *data;
	vn_status       st = vn_recording_data(r, i, &data, err);

	const vn_stats *said = vn_recording_stats(r, e);
	if (!st && said) {
		found->stats = vn_stats_of(data, e->dtype, (size_t)vn_shape_count(&e->shape));
		found->broken = !statistics_hold(said, &found->stats);
	}
	if (!st && *vn_entry_digest(e).hex)
		st = vn_recording_found(r, i, &found->digest, err); /* as found when it was read just now */
	vn_recording_release(r, i);
	vn_recording_forget(r);
	return st;
}

static void print_damage(const vn_entry *e, const numbers *found)
{
	char words[VN_NAME_MAX + 160];
	snprintf(words, sizeof words, "%s: the numbers were changed after they were written: their digest is %s, the file records %s", e->name,
	         found->digest.hex, vn_entry_digest(e).hex);
	print_finding("DAMAGED", e->step, words);
}

static void print_statistics(const vn_entry *e, const vn_stats *said, const vn_stats *found)
{
	char words[VN_NAME_MAX + 200];
	snprintf(words, sizeof words, "%s: its statistics are not those of its numbers: min %.6g, max %.6g, rms %.6g, %" PRId64 " NaN; the file says "
	         "%.6g, %.6g, %.6g, %" PRId64, e->name, found->min, found->max, found->rms, found->nan, said->min, said->max, said->rms,
	         said->nan);
	print_finding("BROKEN", e->step, words);
}

/* The digests, and what `show` prints of a tensor without reading it. */
static vn_status check_numbers(vn_recording *r, digests *d, int *broken, vn_error *err)
{
	const int   n = vn_recording_count(r);
	numbers    *found = calloc((size_t)n + 1, sizeof *found);
	vn_progress bar = { 0 };
	vn_status   st = found ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d digests", n);

	vn_progress_start(&bar, "tensor", n);
	for (int i = 0; !st && i < n; i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const bool      has_digest = *vn_entry_digest(e).hex != '\0';
		vn_progress_at(&bar, i);
		if (e->same_as >= 0 || !(has_digest || vn_recording_stats(r, e)))
			continue;
		st = check_tensor(r, i, &found[i], err);
		d->checked += has_digest;
	}
	vn_progress_stop(&bar);
	for (int i = 0; !st && i < n; i++)
		if (*found[i].digest.hex) {
			print_damage(vn_recording_entry(r, i), &found[i]);
			d->wrong++;
		}
	for (int i = 0; !st && i < n; i++)
		if (found[i].broken) {
			print_statistics(vn_recording_entry(r, i), vn_recording_stats(r, vn_recording_entry(r, i)), &found[i].stats);
			++*broken;
		}
	free(found);
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
	vn_status     st = check_numbers(r, &d, &statistics, err);

	if (!st)
		st = vn_identities_of(r, NULL, NULL, NULL, &x, err);
	if (!st)
		st = check_steps(r, &steps, err);
	for (int i = 0; !st && i < x.n; i++)
		print_finding("BROKEN", x.broken[i].step, x.broken[i].words);
	if (!st && x.checked + d.checked == 0)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s: holds nothing that can be checked", vn_recording_path(r));
	if (!st)
		printf("%d identities checked, %d broken; %d digests, %d wrong\n", x.checked, x.n, d.checked, d.wrong);
	const int rows = st ? 0 : check_rows(r);
	const bool bad = rows > 0 || x.n > 0 || d.wrong > 0 || steps > 0 || statistics > 0;
	vn_identities_free(&x);
	return st ? 2 : bad;
}
