/* check.c: see check.h. */
#include "capture/show/check.h"

#include "capture/recording/echo.h"
#include "capture/recording/garbage.h"
#include "capture/recording/steps.h"
#include "capture/recording/verify.h"
#include "capture/show/identities.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 1, 0))) static char *format_message(const char *format, va_list args)
{
	return vn_alloc_check(vn_text_new_args(format, args));
}

__attribute__((format(printf, 4, 5))) static void add_finding(vn_file_check *c, bool damaged, const vn_entry *of,
                                                              const char *format, ...)
{
	va_list args;

	c->finding = vn_alloc_grown(c->finding, (size_t)c->n, sizeof *c->finding);
	va_start(args, format);
	c->finding[c->n++] = (vn_file_finding) { .damaged = damaged,
		                                     .step = of ? of->step : 0,
		                                     .name = of ? of->name : NULL,
		                                     .words = format_message(format, args) };
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void add_warning(vn_file_check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	c->warning[c->n_warnings++] = format_message(format, args);
	va_end(args);
}

/* Another recorder may have summed in float32 and in another order. */
static bool is_near(double said, double found, double room)
{
	return fabs(said - found) <= room || (isnan(said) && isnan(found));
}

static bool statistics_hold(const vn_stats *said, const vn_stats *found)
{
	const double room = 1e-3 * found->rms;
	return said->nan == found->nan && said->inf == found->inf &&
	       is_near(said->min, found->min, 1e-6 * fabs(found->min)) &&
	       is_near(said->max, found->max, 1e-6 * fabs(found->max)) &&
	       is_near(said->absmax, found->absmax, 1e-6 * found->absmax) && is_near(said->mean, found->mean, room) &&
	       is_near(said->rms, found->rms, room);
}

/* What was computed from a tensor's numbers. */
typedef struct computed_numbers {
	vn_digest digest; /* set if it differs from the one in the file */
	vn_stats  stats;  /* set if they differ from those in the file */
	bool      broken;
} computed_numbers;

/* Reads the tensor once. The caller has allowed damaged tensors. */
static vn_status check_tensor(vn_recording *r, int i, computed_numbers *found, vn_error *err)
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

static void find_damage(vn_file_check *c, const vn_entry *e, const computed_numbers *found)
{
	add_finding(c, true, e,
	            "%s: the numbers were changed after they were written: their digest is %s, the file records %s",
	            e->name, found->digest.hex, vn_entry_digest(e).hex);
}

static void find_statistics(vn_file_check *c, const vn_entry *e, const vn_stats *said, const vn_stats *found)
{
	add_finding(c, false, e,
	            "%s: its statistics are not those of its numbers: min %.6g, max %.6g, rms %.6g, %" PRId64 " NaN; "
	            "the file records %.6g, %.6g, %.6g, %" PRId64,
	            e->name, found->min, found->max, found->rms, found->nan, said->min, said->max, said->rms, said->nan);
}

/* Checks the digests, and the statistics that `show` prints without reading tensors. */
static vn_status check_numbers(vn_recording *r, vn_file_check *c, vn_error *err)
{
	const int                  n = vn_recording_count(r);
	VN_FREED computed_numbers *found = vn_alloc_zero((size_t)n, sizeof *found);
	vn_progress                bar = { 0 };
	vn_status                  st = VN_OK;

	vn_progress_start(&bar, "tensor", n);
	for (int i = 0; !st && i < n; i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const bool      has_digest = *vn_entry_digest(e).hex != '\0';
		vn_progress_at(&bar, i);
		if (e->same_as >= 0 || !(has_digest || vn_recording_stats(r, e)))
			continue;
		st = check_tensor(r, i, &found[i], err);
		c->digests += has_digest;
	}
	vn_progress_stop(&bar);
	for (int i = 0; !st && i < n; i++)
		if (*found[i].digest.hex) {
			find_damage(c, vn_recording_entry(r, i), &found[i]);
			c->digests_wrong++;
		}
	for (int i = 0; !st && i < n; i++)
		if (found[i].broken)
			find_statistics(c, vn_recording_entry(r, i), vn_recording_stats(r, vn_recording_entry(r, i)),
			                &found[i].stats);
	return st;
}

/* Steps are consecutive, and all are present. */
static void check_steps(const vn_recording *r, vn_file_check *c)
{
	char words[VN_STEPS_WORDS];

	if (vn_steps_disorder(r, words))
		add_finding(c, false, NULL, "%s", words);
	if (vn_steps_gap(&r, 1, words))
		add_finding(c, false, NULL, "no step has %s", words);
	if (vn_steps_again(r, NULL, words))
		add_warning(c, "%s", words);
}

/* Tensors labelled by tokens must have the rows of their step. */
static void check_rows(const vn_recording *r, vn_file_check *c)
{
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		char            shape[VN_SHAPE_TEXT];
		if (e->rows_off)
			add_finding(c, false, e, "%s: axes '%s' of %s, and rows of its step: %" PRId64, e->name, e->axes,
			            vn_shape_text(&e->shape, shape), vn_recording_step(r, e->step)->rows);
	}
}

static bool is_synthetic(const vn_recording *r)
{
	return strcmp(vn_recording_provenance(r), "synthetic") == 0;
}

/* A synthetic model was never trained, and may echo. */
static vn_status check_echo(vn_recording *r, vn_file_check *c, vn_error *err)
{
	vn_echo         e = { 0 };
	vn_error        why = { "" };
	const vn_status st = is_synthetic(r) ? VN_OK : vn_echo_of(r, &e, &why);

	if (st || e.rows == 0)
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	c->echo_rows = e.rows;
	const double peaks = (double)e.peaks / (double)e.rows, repeats = (double)e.repeats / (double)e.rows;
	if (vn_echoes(peaks, repeats, e.rows))
		add_warning(
			c,
			"%s: the logits peak at their input token in %.3g %% of %lld rows, and the text repeats a token in "
			"%.3g %%: the tensor that reaches the output head resembles the embedding. Untrained weights with a "
			"tied embedding do this too, without a mistake",
			vn_recording_path(r), 100 * peaks, (long long)e.rows, 100 * repeats);
	return VN_OK;
}

/* A synthetic model does not write text either. */
static vn_status check_garbage(vn_recording *r, vn_file_check *c, vn_error *err)
{
	vn_garbage      g = { 0 };
	vn_error        why = { "" };
	char            words[VN_GARBAGE_WORDS];
	const vn_status st = is_synthetic(r) ? VN_OK : vn_garbage_of(r, &g, &why);

	if (st)
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	for (vn_garbage_sign i = 0; i < VN_N_GARBAGE_SIGNS; i++)
		if (vn_garbage_shows(&g, NULL, i, words))
			add_warning(c, "%s: the %s%s", vn_recording_path(r), words,
			            i == VN_GARBAGE_REPEATS
			                ? ". A small model that decodes greedily may do this too, without a mistake"
			                : "");
	return VN_OK;
}

static vn_status check_identities(vn_recording *r, vn_file_check *c, vn_error *err)
{
	VN_ENDS(vn_identities_free) vn_identities x = { 0 };
	const vn_status                           st = vn_identities_of(r, &x, err);

	c->identities = x.checked;
	c->identities_broken = x.n;
	for (int i = 0; !st && i < x.n; i++) {
		add_finding(c, false, NULL, "%s", x.broken[i].words);
		c->finding[c->n - 1].step = x.broken[i].step;
	}
	return st;
}

vn_status vn_file_check_run(vn_recording *r, vn_file_check *c, vn_error *err)
{
	vn_status st;

	*c = (vn_file_check) { 0 };
	if ((st = check_numbers(r, c, err)) || (st = check_identities(r, c, err)))
		return st;
	check_steps(r, c);
	if ((st = check_echo(r, c, err)))
		return st;
	if (c->identities + c->digests == 0 && c->echo_rows == 0)
		return vn_fail(err, VN_ERR_MISMATCH, "%s: holds nothing that can be checked", vn_recording_path(r));
	if (c->identities + c->digests == 0)
		add_warning(
			c,
			"%s: has no digests, and no tensors that can be checked against each other: only whether %lld rows of "
			"logits echo their input was checked",
			vn_recording_path(r), (long long)c->echo_rows);
	if ((st = check_garbage(r, c, err)))
		return st;
	check_rows(r, c);
	return VN_OK;
}

void vn_file_check_free(vn_file_check *c)
{
	for (int i = 0; i < c->n; i++)
		free(c->finding[i].words);
	for (int i = 0; i < c->n_warnings; i++)
		free(c->warning[i]);
	free(c->finding);
	*c = (vn_file_check) { 0 };
}
