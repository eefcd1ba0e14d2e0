/* cmd_selftest.c: vernier selftest [REF [CAND]]: show that compare catches what is wrong. */
#include "compare/commands.h"
#include "compare/options.h"
#include "compare/selftest/selftest_report.h"

#include "capture/base/warnings.h"
#include "capture/run/interrupt.h"
#include "libref/base/glob.h"
#include "libref/base/progress.h"
#include "libref/base/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
	vn_selftest_pair pair; /* the pair of files given by the user */
	const char      *only; /* glob on group/name, or NULL */
	int              json, threads;
	bool             strict;
} settings;

#define complain(...) vn_complain("selftest", __VA_ARGS__)

static const vn_option options[] = {
	{ "floor", 0, VN_INTO(settings, pair.floor), .argument = "FILE",
	  .help = "A recording of the reference in the candidate's precision. Small changes of a 16-bit run can be seen "
	          "only in units of a floor, and are not tried without one. Default: none." },
	{ "model", 0, VN_INTO(settings, pair.model), .argument = "MODEL",
	  .help =
	      "The model that REF was run with, for mutations of REF that only a run of its model shows. Default: none." },
	{ "limits", 0, VN_INTO(settings, pair.limits), .argument = "FILE",
	  .help = "Test these limits. Default: the shipped ones." },
	{ "only", 0, VN_INTO(settings, only), .argument = "GLOB",
	  .help = "Make only these mutations, such as 'numbers/*'. Default: all." },
	VN_FORMAT_OPTION(settings, json, ""),
	VN_STRICT_OPTION(settings, strict, ""),
	VN_THREADS_OPTION(settings, threads),
};

const vn_command vn_selftest_command = {
	.name = "selftest",
	.synopsis = "[REF [CAND]] [OPTION]...",
	.about =
		"Make every known mistake (a mutation) in a copy of correct recordings, compare each copy as vernier compare "
		"does, and check that each mutation is reported at the right checkpoint with the right metric.\n"
		"REF and CAND are two recordings that are within their limits. REF alone is compared with itself. "
		"Without REF, vernier makes recordings of a small synthetic model in every precision.",
	VN_OPTION_TABLE(options),
	.status = "0 all caught and no false alarm, 1 something was missed (or a warning with --strict), 2 trouble",
};

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	vn_error  err;
	const int st = vn_options_read(&vn_selftest_command, argc, argv, k);
	if (st)
		return st;
	if (k->only && vn_glob_check(k->only, &err))
		return complain("--only: %s", err.text);
	if (argc - optind > 2)
		return complain("two recordings at most, not %d", argc - optind);
	k->pair.ref = optind < argc ? argv[optind] : NULL;
	k->pair.cand = optind + 1 < argc ? argv[optind + 1] : k->pair.ref;
	k->pair.name = "own";
	if (!k->pair.ref && (k->pair.floor || k->pair.model))
		return complain("%s needs the recordings REF and CAND", k->pair.floor ? "--floor" : "--model");
	return 0;
}

/* ---- the folder for copies ---------------------------------------------------------------- */

static vn_status make_dir(char *dir, size_t room, vn_error *err)
{
	const char *where = getenv("TMPDIR");
	if (snprintf(dir, room, "%s/vernier-selftest-XXXXXX", where && *where ? where : "/tmp") >= (int)room)
		return vn_fail(err, VN_ERR_IO, "%.80s...: path too long", where);
	vn_temporary_begin();
	const bool made = mkdtemp(dir) != NULL;
	const int  failed = errno;
	vn_temporary_add(made ? dir : NULL);
	if (!made) {
		dir[0] = '\0';
		return vn_fail(err, VN_ERR_IO, "%s: cannot create a directory there: %s", where && *where ? where : "/tmp",
		               strerror(failed));
	}
	return VN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool is_wanted(const settings *k, const vn_mutation_group *g, const vn_mutation *m)
{
	char name[96];
	snprintf(name, sizeof name, "%s/%s", g->name, m->name);
	return !k->only || vn_glob_match(k->only, name);
}

static vn_status try_all(const settings *k, const vn_selftest *s, int p, const char *dir, vn_progress *bar,
                         vn_error *err)
{
	vn_outcome             *o = &s->outcome[p * (s->n_mutations + 1)];
	const int               first = p * (s->n_mutations + 1);
	const vn_selftest_pair *steps = s->pair[p].steps;
	vn_mutation_harness    *c, *of_steps = NULL;
	vn_status               st = vn_mutation_harness_open(&s->pair[p], dir, k->threads, &c, err);
	int                     i = 1;

	if (st)
		return st;
	st = vn_mutation_harness_unchanged(c, &o[0], err);
	if (!st && steps && o[0].caught == VN_CAUGHT &&
	    !(st = vn_mutation_harness_open(steps, dir, k->threads, &of_steps, err)))
		st = vn_mutation_harness_unchanged(of_steps, &o[0], err);
	for (const vn_mutation_group *g = vn_mutation_groups; g->name; g++)
		for (const vn_mutation *m = g->mutation; m->name && !st; m++, i++) {
			vn_progress_at(bar, first + i);
			o[i].caught = VN_ELSEWHERE;
			if (!is_wanted(k, g, m))
				continue;
			st = vn_interrupted() ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted")
			                      : vn_mutation_harness_try(m->when && of_steps ? of_steps : c, m, &o[i], err);
		}
	vn_mutation_harness_close(of_steps);
	vn_mutation_harness_close(c);
	return st;
}

static vn_status run_selftest(const settings *k, vn_selftest *s, vn_own_runs *own, const char *dir, vn_error *err)
{
	vn_progress bar = { 0 };
	vn_status   st = VN_OK;

	if (!k->pair.ref && (st = vn_own_runs_make(dir, k->threads, own, err)))
		return st;
	for (int p = 0; p < VN_SELFTEST_PAIRS; p++)
		own->pair[p].limits = own->steps[p].limits = k->pair.limits;
	s->pair = k->pair.ref ? &k->pair : own->pair;
	s->n_pairs = k->pair.ref ? 1 : VN_SELFTEST_PAIRS;
	s->n_mutations = vn_mutations_count();
	if (!(s->outcome = calloc((size_t)s->n_pairs * (size_t)(s->n_mutations + 1), sizeof *s->outcome)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d outcomes", s->n_mutations);
	vn_progress_start(&bar, "mutation", (int64_t)s->n_pairs * (s->n_mutations + 1));
	for (int p = 0; !st && p < s->n_pairs; p++)
		st = try_all(k, s, p, dir, &bar, err);
	vn_progress_stop(&bar);
	if (!st && vn_selftest_count(s, VN_CAUGHT) + vn_selftest_count(s, VN_MISSED) == 0)
		st = vn_fail(err, VN_ERR_USAGE,
		             k->only ? "--only '%s' leaves no mutation to try"
		                     : "%s holds no tensor that a mutation can change",
		             k->only ? k->only : k->pair.ref);
	return st;
}

int cmd_selftest(int argc, char **argv)
{
	settings     k = { 0 };
	vn_selftest  s = { 0 };
	vn_error     err = { "" };
	char         dir[2048] = "";
	vn_own_runs *own = NULL;
	const int    said = parse_arguments(&k, argc, argv);
	vn_status    st;

	if (said)
		return said == 1 ? 0 : 2;
	vn_interrupt_catch();
	if (!(own = calloc(1, sizeof *own)))
		st = vn_fail(&err, VN_ERR_NOMEM, "no memory");
	else if (!(st = make_dir(dir, sizeof dir, &err)))
		st = run_selftest(&k, &s, own, dir, &err);
	if (!st && k.json)
		st = vn_selftest_json(&s, stdout, &err);
	else if (!st)
		vn_selftest_text(&s, stdout);
	const int status = vn_selftest_count(&s, VN_MISSED) ? 1 : 0;
	if (*dir)
		vn_temporary_clear(dir);
	free(s.outcome);
	free(own);
	return vn_command_end("selftest", st, &err, k.strict, status);
}
