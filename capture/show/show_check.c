/* show_check.c: `vernier show FILE --check`: checks that need no other recording. */
#include "capture/base/warnings.h"
#include "capture/recording/echo.h"
#include "capture/recording/garbage.h"
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
#include <string.h>

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

/* Another recorder may have summed in float32 and in another order. */
static bool near(double said, double found, double room)
{
	return fabs(said - found) <= room || (isnan(said) && isnan(found));
}

static bool statistics_hold(const vn_stats *said, const vn_stats *found)
{
	const double room = 1e-3 * found->rms;
	return said->nan == found->nan && said->inf == found->inf && near(said->min, found->min, 1e-6 * fabs(found->min)) &&
	       near(said->max, found->max, 1e-6 * fabs(found->max)) &&
	       near(said->absmax, found->absmax, 1e-6 * found->absmax) && near(said->mean, found->mean, room) &&
	       near(said->rms, found->rms, room);
}

/* Of one tensor. */
typedef struct numbers {
	vn_digest digest; /* set if it differs from the one in the file */
	vn_stats  stats;  /* set if they differ from those in the file */
	bool      broken;
} numbers;

/* Reads the tensor once. The caller has allowed damaged tensors. */
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
		st = vn_recording_found(r, i, &found->digest, err); /* as computed during that read */
	vn_recording_release(r, i);
	vn_recording_forget(r);
	return st;
}

static void print_damage(const vn_entry *e, const numbers *found)
{
	char words[VN_NAME_MAX + 160];
	snprintf(words, sizeof words,
	         "%s: the numbers were changed after they were written: their digest is %s, the file records %s", e->name,
	         found->digest.hex, vn_entry_digest(e).hex);
	print_finding("DAMAGED", e->step, words);
}

static void print_statistics(const vn_entry *e, const vn_stats *said, const vn_stats *found)
{
	char words[VN_NAME_MAX + 200];
	snprintf(words, sizeof words,
	         "%s: its statistics are not those of its numbers: min %.6g, max %.6g, rms %.6g, %" PRId64
	         " NaN; the file says "
	         "%.6g, %.6g, %.6g, %" PRId64,
	         e->name, found->min, found->max, found->rms, found->nan, said->min, said->max, said->rms, said->nan);
	print_finding("BROKEN", e->step, words);
}

/* Checks the digests, and the statistics that `show` prints without reading tensors. */
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
			print_statistics(vn_recording_entry(r, i), vn_recording_stats(r, vn_recording_entry(r, i)),
			                 &found[i].stats);
			++*broken;
		}
	free(found);
	return st;
}

/* Counts failures of two rules: steps are consecutive, and all are present. */
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

/* Tensors labelled by tokens must have the rows of their step. */
static int check_rows(const vn_recording *r)
{
	int wrong = 0;
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		char shape[VN_SHAPE_TEXT], words[VN_NAME_MAX + 320];
		if (!e->rows_off)
			continue;
		snprintf(words, sizeof words, "%s: axes '%s' of %s, and rows of its step: %" PRId64, e->name, e->axes,
		         vn_shape_text(&e->shape, shape), vn_recording_step(r, e->step)->rows);
		print_finding("BROKEN", e->step, words);
		wrong++;
	}
	return wrong;
}

/* A synthetic model was never trained, and may echo. */
static vn_status warn_of_echo(vn_recording *r, vn_error *err)
{
	const bool      untrained = strcmp(vn_recording_provenance(r), "synthetic") == 0;
	vn_echo         e = { 0 };
	vn_error        why = { "" };
	const vn_status st = untrained ? VN_OK : vn_echo_of(r, &e, &why);

	if (st || e.rows == 0)
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	const double peaks = (double)e.peaks / (double)e.rows, repeats = (double)e.repeats / (double)e.rows;
	if (vn_echoes(peaks, repeats, e.rows))
		vn_warn(
			"show",
			"%s: the logits peak at their input token in %.3g %% of %lld rows, and the text repeats a token in %.3g "
			"%%: the tensor that "
			"reaches the output head resembles the embedding. Untrained weights with a tied embedding do this too, "
			"without a mistake",
			vn_recording_path(r), 100 * peaks, (long long)e.rows, 100 * repeats);
	return VN_OK;
}

/* Nor does a synthetic model write a text. */
static vn_status warn_of_garbage(vn_recording *r, vn_error *err)
{
	const bool      untrained = strcmp(vn_recording_provenance(r), "synthetic") == 0;
	vn_garbage      g = { 0 };
	vn_error        why = { "" };
	char            words[VN_GARBAGE_WORDS];
	const vn_status st = untrained ? VN_OK : vn_garbage_of(r, &g, &why);

	if (st)
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	for (vn_garbage_sign i = 0; i < VN_N_GARBAGE_SIGNS; i++)
		if (vn_garbage_shows(&g, NULL, i, words))
			vn_warn("show", "%s: the %s%s", vn_recording_path(r), words,
			        i == VN_GARBAGE_REPEATS ? ". A small model that decodes greedily may do this too, without a mistake"
			                                : "");
	return VN_OK;
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
	if (!st)
		st = warn_of_echo(r, err);
	if (!st)
		st = warn_of_garbage(r, err);
	const int rows = st ? 0 : check_rows(r);
	const bool bad = rows > 0 || x.n > 0 || d.wrong > 0 || steps > 0 || statistics > 0;
	vn_identities_free(&x);
	return st ? 2 : bad;
}
