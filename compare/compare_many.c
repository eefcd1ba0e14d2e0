/* compare_many.c: several candidates in one report, and recordings that vote. */
#include "compare/compare_line.h"

#include "compare/many/many_report.h"
#include "compare/many/vote.h"
#include "capture/file/output.h"
#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/say.h"

#include <string.h>

static bool has_file(const vn_compare_line *k, int i, const char *path)
{
	char *const *file;
	for (int n = vn_compare_files_of(k, i, &file) - 1; n >= 0; n--)
		if (vn_same_file(file[n], path))
			return true;
	return false;
}

static bool share_a_file(const vn_compare_line *k, int i, int j)
{
	char *const *file;
	for (int n = vn_compare_files_of(k, i, &file) - 1; n >= 0; n--)
		if (has_file(k, j, file[n]))
			return true;
	return false;
}

/* A candidate that is the same file as the reference or another candidate always agrees with it. */
static vn_status check_twice(const vn_compare_line *k, vn_error *err)
{
	for (int i = 0; i < k->n_many && !(k->how.o.allow & VN_ALLOW_ITSELF); i++) {
		if (!k->vote && has_file(k, i, k->ref))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s is the same file as the reference, %s: a recording always agrees "
			               "with itself (--allow itself compares it all the same)",
			               k->many[i], k->ref);
		for (int j = 0; j < i; j++)
			if (share_a_file(k, i, j))
				return vn_fail(err, VN_ERR_USAGE,
				               "%s is given twice, as candidates %c and %c (--allow itself compares it all the same)",
				               k->many[i], vn_many_letter(j), vn_many_letter(i));
	}
	return VN_OK;
}

/* Compares each candidate with the reference. */
static vn_status judge_many(const vn_compare_line *k, vn_many *m, vn_error *err)
{
	vn_compare_line one[VN_MANY_MOST];

	for (int i = 0; i < k->n_many; i++) {
		one[i] = *k;
		one[i].n_ranks = vn_compare_files_of(k, i, &one[i].ranks);
		one[i].cand = one[i].n_ranks > 1 ? k->many[i] : one[i].ranks[0];
		one[i].absent = k->gone >> i & 1 ? VN_NO_CANDIDATE : VN_NONE_ABSENT;
	}
	return vn_compare_each(one, k->n_many, m, err);
}

/* Digits of the format the recording was computed in; float32's when it does not say. A file that
 * cannot be opened is reported with its pairs. */
static vn_status digits_of(const char *path, int *digits, vn_error *err)
{
	vn_recording   *r = NULL;
	vn_policy       policy;
	vn_error        why;
	const vn_status st = vn_recording_open(path, &r, &why);
	const char     *word = st ? NULL : vn_facts_get(vn_recording_run(r), "precision");

	*digits = vn_dtype_digits(
		word && !vn_policy_read("precision", vn_policy_names, word, &policy, &why) ? policy.storage : VN_F32);
	vn_recording_close(r);
	return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
}

/* Compares every pair of recordings, in the order of vote.h. Fills digits (n_many). */
static vn_status judge_pairs(const vn_compare_line *k, vn_many *m, int *digits, vn_error *err)
{
	vn_compare_line one[VN_MANY_MOST];
	vn_status       st = VN_OK;
	int             n = 0;

	for (int i = 0; i < k->n_many && !st; i++)
		st = digits_of(k->many[i], &digits[i], err);
	for (int i = 0; i < k->n_many && !st; i++)
		for (int j = i + 1; j < k->n_many; j++, n++) {
			const int ref = digits[j] > digits[i] ? j : i, cand = i + j - ref;
			one[n] = *k;
			one[n].ref = k->many[ref];
			one[n].cand = k->many[cand];
			one[n].ranks = &k->many[cand];
			one[n].sides.n_ref_names = k->sides.n_names;
			memcpy(one[n].sides.ref_names, k->sides.names, sizeof one[n].sides.ref_names);
		}
	return st ? st : vn_compare_each(one, n, m, err);
}

/* Prints to stderr what the report on stdout leaves out. */
static void warn_many(const vn_compare_line *k, const vn_many *m)
{
	const bool shown = vn_compare_shows_text(k);
	fflush(stdout);
	for (int i = 0; i < m->n; i++) {
		const vn_many_candidate *x = &m->candidate[i];
		vn_lines                 refusals = { 0 };
		char                     who[32];
		snprintf(who, sizeof who, "candidate %c: ", vn_many_letter(i));
		for (int j = 0; j < vn_document_lines(vn_many_list(x, "refusals")); j++)
			vn_lines_add(&refusals, "%s", vn_document_line(vn_many_list(x, "refusals"), j));
		vn_lines_print_refusals(&refusals, who, "--format json lists them", stderr);
		vn_lines_free(&refusals);
		if (x->status == 2 && strcmp(i ? vn_many_said(x - 1, "trouble") : "", vn_many_said(x, "trouble")) != 0)
			vn_say(stderr, "vernier %s: candidate %c: %s\n", k->name, vn_many_letter(i), vn_many_said(x, "trouble"));
		for (int j = 0; j < vn_document_lines(vn_many_list(x, "warnings")) && !shown; j++)
			vn_say(stderr, "vernier %s: warning: candidate %c: %s\n", k->name, vn_many_letter(i),
			       vn_document_line(vn_many_list(x, "warnings"), j));
	}
}

static vn_status report_many(const vn_compare_line *k, const vn_many *m, vn_error *err)
{
	vn_output out;
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_reports && !st; i++) {
		const char           *path = k->report[i].path;
		const vn_many_options o = { .colour = !path && vn_colours((vn_colour_choice)k->colour),
			                        .all = k->all,
			                        .path = path };
		if (!(st = vn_compare_check_apart(k, i, err)) &&
		    !(st = vn_output_open(&out, path, VN_PLACE_REPORT, k->force, err)))
			st = vn_output_close(&out, vn_many_by_name(k->report[i].form->name)->write(m, &o, out.file, err), err);
	}
	return st;
}

/* Prints the verdict and the reports written, in one line, when no report goes to stdout. */
static void say_many_written(const vn_compare_line *k, const vn_many *m)
{
	char who[VN_MANY_WHO];

	vn_say(stdout, "%s: %s. ", vn_many_say_all(m), vn_many_say_who(m, who));
	vn_compare_print_files(k);
}

/* A vote compares every pair: no page shows all of them. */
static unsigned wanted_forms(const vn_compare_line *k)
{
	unsigned keep = 0;
	for (int i = 0; i < k->n_reports; i++)
		keep |= vn_many_by_name(k->report[i].form->name)->keeps;
	return k->vote ? keep & ~(unsigned)VN_MANY_KEEP_PAGES : keep;
}

/* Writes the result in every requested format. */
static vn_status tell_many(const vn_compare_line *k, const vn_many *m, vn_error *err)
{
	const bool      any = vn_many_count(m, 2) < m->n;
	const vn_status st = any ? report_many(k, m, err) : VN_OK;
	if (st)
		return st;
	if (!k->quiet && any && vn_compare_all_to_files(k))
		say_many_written(k, m);
	warn_many(k, m);
	return VN_OK;
}

static vn_status run_vote(const vn_compare_line *k, vn_many *pairs, int *status, vn_error *err)
{
	VN_ENDS(vn_vote_finish) vn_vote v = { .many = { 0 } };
	int                             digits[VN_VOTE_MOST];
	vn_status                       st = judge_pairs(k, pairs, digits, err);

	if (!st && !(st = vn_vote_count(&v, pairs, k->many, digits, k->n_many, k->how.o.strict, err))) {
		vn_compare_settings(k, &v.many.notes);
		st = tell_many(k, &v.many, err);
	}
	*status = vn_many_status(&v.many);
	return st;
}

static const char *kept(const char *text)
{
	return *text ? vn_alloc_check(vn_intern(text)) : NULL;
}

vn_together_pair vn_compare_many(const vn_compare_line *k)
{
	VN_ENDS(vn_many_finish) vn_many m = { .ref = k->ref, .keep = wanted_forms(k) };
	vn_error                        err = { "" };
	char                            who[VN_MANY_WHO];
	int                             status = 2;
	vn_status                       st;

	if (!(st = check_twice(k, &err)) && !(st = vn_compare_check_places(k, &err))) {
		vn_compare_settings(k, &m.notes);
		if (k->vote)
			st = run_vote(k, &m, &status, &err);
		else if (!(st = judge_many(k, &m, &err)) && !(st = tell_many(k, &m, &err)))
			status = vn_many_status(&m);
	}
	if (st)
		vn_say(stderr, "vernier %s: %s\n", k->name, err.text);
	vn_together_pair o = {
		.status = st ? 2 : status,
		.again = st == VN_ERR_NOMEM || st == VN_ERR_INTERRUPTED,
		.words = kept(st ? "not compared" : vn_many_say_who(&m, who)),
		.by = { kept(vn_many_ref_about(&m)) },
	};
	for (int i = 0; i < k->n_many; i++) {
		o.each[i] = (char)('0' + (st ? 2 : m.candidate[i].status));
		o.by[i + 1] = k->gone >> i & 1 ? NULL : kept(vn_many_said(&m.candidate[i], "about"));
	}
	return o;
}
