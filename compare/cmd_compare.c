/* cmd_compare.c: vernier compare REF CAND: one recording judged by another. */
#include "compare/commands.h"
#include "compare/chapters/compare.h"
#include "compare/comparison/checkpoint.h"
#include "compare/match/folders.h"
#include "compare/options.h"
#include "compare/text/output.h"
#include "compare/report/report.h"
#include "compare/match/sides.h"

#include "capture/recording/derive.h"
#include "capture/file/place.h"
#include "capture/base/warnings.h"

#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPORTS = 8 };

typedef struct command {
	const char *name; /* compare, explain */
	const char *ref, *cand, *limits, *floor;
	char      *const *ranks; /* with --shard: cand and the other ranks' */
	int         n_ranks;
	struct { const vn_report_form *form; const char *path; } report[MAX_REPORTS];
	int         n_reports;
	bool        force, all, quiet, shard;
	enum { NONE_ABSENT, NO_REFERENCE, NO_CANDIDATE } absent; /* of a pair of two folders */
	vn_sides    sides; /* names and rows; files are above */
	vn_comparing how;
} command;

static void usage(const char *name, FILE *to)
{
	fprintf(to, "usage: vernier %s REF CAND [--limits FILE] [--floor FILE | --model MODEL] [--floor-precision %s]\n"
	        "                       [--names MAP]... [--ref-names MAP]... [--batch-row N] [--ref-batch-row N]\n"
	        "                       [--replay] [--explain] [--bitwise] [--baseline FILE] [--points GLOB]... [--allow %s]\n"
	        "                       [--format %s [-o PATH]]...\n"
	        "                       [--all] [--quiet] [--strict] [--threads N] [--force]\n"
	        "       vernier %s REF --shard RANK0 RANK1...     and the same options\n"
	        "  REF and CAND are recordings, or two folders of them, paired by file name\n"
	        "  --names MAP     CAND's names are another engine's: hf, vllm, llama.cpp, or a file (specs/names.md)\n"
	        "  --ref-names MAP the same of REF\n"
	        "  --batch-row N   which prompt of a CAND of several, from 0; --ref-batch-row N of such a REF\n"
	        "  --shard         the candidate is the recordings of all ranks of a tensor-parallel run\n"
	        "  --limits FILE   what to keep to; else vernier's own limits for the candidate's precision\n"
	        "  --floor FILE    a recording of the reference in the candidate's precision: the unit of *_over_floor\n"
	        "  --model MODEL   the same, computed here; and where something is outside, every operation is computed again on the\n"
	        "                  candidate's own inputs: what it added itself, and what came with its inputs\n"
	        "  --replay        that also where nothing is outside\n"
	        "  --explain       which known mistake reproduces each origin; needs --model\n"
	        "  --floor-precision P  of that run, instead of the candidate's own\n"
	        "  --bitwise       no limits: equal formats and equal bits, or where they first differ\n"
	        "  --baseline FILE a JSON report of an earlier comparison: what is outside and no worse than there is known\n"
	        "                  and does not fail; of two folders, as -o names its files\n"
	        "  --points GLOB   compare only these checkpoints, on both sides; each GLOB must match some\n"
	        "  --allow WORDS   differences that shall not refuse or fail the comparison, comma-separated\n"
	        "  --format, -o    a report, to PATH or to stdout; may be repeated, all from one pass; without --format\n"
	        "                  PATH's ending says which: .json, .xml, .md, .html\n"
	        "  --all           a line for every checkpoint, also those within limits\n"
	        "  --quiet, -q     nothing on stdout: the exit status, and reports with -o; warnings are on stderr\n"
	        "  --strict        " VN_STRICT_HELP "\n"
	        "  --threads N     at most so many; one a processor unless said\n"
	        "  --force         replace reports that exist\n"
	        "exit status: 0 within limits, 1 outside, 2 trouble\n", name, vn_policy_names, vn_allow_names,
	        vn_report_names, name);
}

/* --format opens a report, -o says where the last one goes; -o alone opens one by its suffix. */
static int add_form(command *k, const vn_report_form *form)
{
	if (!form)
		return vn_complain(k->name, "--format takes %s, not '%s'", vn_report_names, optarg);
	if (k->n_reports == MAX_REPORTS)
		return vn_complain(k->name, "more than %d reports", MAX_REPORTS);
	k->report[k->n_reports++].form = form;
	return 0;
}

static int add_path(command *k, const char *path)
{
	if (!*path)
		return vn_complain(k->name, "-o needs a path");
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path && strcmp(k->report[i].path, path) == 0)
			return vn_complain(k->name, "two reports into one file, %s", path);
	if (k->n_reports == 0 || k->report[k->n_reports - 1].path) {
		const int st = add_form(k, vn_report_by_suffix(path));
		if (st)
			return st;
	}
	k->report[k->n_reports - 1].path = path;
	return 0;
}

static int add_row(const command *k, const char *option, int64_t *row)
{
	return vn_text_whole(optarg, 0, INT32_MAX, row) ? 0 : vn_complain(k->name, "%s takes a number from 0, not '%s'", option, optarg);
}

/* 0 to go on, 1 help was asked for, 2 wrong. */
static int arguments(command *k, int argc, char **argv)
{
	enum { LIMITS = 256, FLOOR, FORMAT, ALL, FORCE, BITWISE, BASELINE, NAMES, REF_NAMES, BATCH_ROW, REF_BATCH_ROW, SHARD };
	static const struct option options[] = {
		VN_COMPARING_OPTIONS,
		{ "limits", required_argument, NULL, LIMITS }, { "floor", required_argument, NULL, FLOOR },
		{ "baseline", required_argument, NULL, BASELINE }, { "names", required_argument, NULL, NAMES },
		{ "ref-names", required_argument, NULL, REF_NAMES }, { "batch-row", required_argument, NULL, BATCH_ROW },
		{ "ref-batch-row", required_argument, NULL, REF_BATCH_ROW },
		{ "shard", no_argument, NULL, SHARD },
		{ "format", required_argument, NULL, FORMAT }, { "output", required_argument, NULL, 'o' },
		{ "all", no_argument, NULL, ALL }, { "quiet", no_argument, NULL, 'q' }, { "force", no_argument, NULL, FORCE },
		{ "bitwise", no_argument, NULL, BITWISE }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c, st = 0;

	optind = 1;
	opterr = 0;
	while (!st && (c = getopt_long(argc, argv, ":o:qh", options, NULL)) != -1)
		switch (c) {
		case LIMITS:   st = vn_option_once(k->name, "--limits", optarg, &k->limits); break;
		case FLOOR:    st = vn_option_once(k->name, "--floor", optarg, &k->floor); break;
		case BASELINE: st = vn_option_once(k->name, "--baseline", optarg, &k->how.o.baseline); break;
		case NAMES:    st = vn_option_more(k->name, "--names", optarg, k->sides.names, &k->sides.n_names, VN_MOST_MAPS); break;
		case REF_NAMES:
			st = vn_option_more(k->name, "--ref-names", optarg, k->sides.ref_names, &k->sides.n_ref_names, VN_MOST_MAPS);
			break;
		case SHARD:    k->shard = true; break;
		case BATCH_ROW: st = add_row(k, "--batch-row", &k->sides.batch_row); break;
		case REF_BATCH_ROW: st = add_row(k, "--ref-batch-row", &k->sides.ref_batch_row); break;
		case FORMAT:   st = add_form(k, vn_report_by_name(optarg)); break;
		case 'o':      st = add_path(k, optarg); break;
		case ALL:      k->all = true; break;
		case FORCE:    k->force = true; break;
		case BITWISE:  k->how.o.bitwise = true; break;
		case 'q':      k->quiet = true; break;
		case 'h':      usage(k->name, stdout); return 1;
		default:       st = vn_option_comparing(k->name, c, optarg, argv, &k->how); break;
		}
	if (st)
		return st;
	if (k->shard && argc - optind < 3)
		return vn_complain(k->name, "--shard takes a reference and the recordings of two ranks or more; %d files given", argc - optind);
	if (k->shard && argc - optind > 1 + VN_MOST_RANKS)
		return vn_complain(k->name, "more than %d ranks", VN_MOST_RANKS);
	if (!k->shard && argc - optind != 2)
		return vn_complain(k->name, argc - optind > 2 ? "two recordings, not %d" : "which two recordings? %d given", argc - optind);
	if (k->how.o.bitwise && (k->limits || k->floor || k->how.o.model))
		return vn_complain(k->name, "--bitwise leaves nothing to limits and floors: give one or the other");
	if (k->how.o.explain && !k->how.o.model)
		return vn_complain(k->name, "an explanation is computed with the weights: give --model MODEL");
	if ((st = vn_check_floor(k->name, &k->how, k->floor)))
		return st;
	k->ref = argv[optind];
	k->cand = argv[optind + 1];
	k->ranks = argv + optind + 1;
	k->n_ranks = k->shard ? argc - optind - 1 : 1;
	if (k->n_reports == 0 && !k->quiet)
		k->report[k->n_reports++].form = vn_report_by_name("text");
	for (int i = 0; k->quiet && i < k->n_reports; i++)
		if (!k->report[i].path)
			return vn_complain(k->name, "--quiet leaves nothing for stdout: --format %s needs -o PATH", k->report[i].form->name);
	return 0;
}

/* vernier's own limits for weights in blocks against others: what that costs is more than what any precision does. */
static const char *block_limits(const command *k, const vn_comparison *c)
{
	const char *ref = vn_recording_format(c->ref), *cand = vn_recording_format(c->cand);
	return (k->how.o.allow & VN_ALLOW_WEIGHTS) && cand && !(ref && strcmp(ref, cand) == 0)
	       ? vn_limits_of_blocks(cand, vn_recording_family(c->cand)) : NULL;
}

static vn_status read_limits(const command *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	if (k->how.o.bitwise) {
		snprintf(chosen, room, "equal bits are asked for");
		return vn_limits_bitwise(&c->limits, err);
	}
	if (k->limits) {
		snprintf(chosen, room, "--limits");
		return vn_limits_open(k->limits, &c->limits, err);
	}
	/* Without a candidate those of what should have been compared. */
	const char *who = k->absent == NO_CANDIDATE ? "reference" : "candidate";
	const char *precision = vn_facts_get(vn_recording_run(k->absent == NO_CANDIDATE ? c->ref : c->cand), "precision");
	const char *blocks = block_limits(k, c);
	snprintf(chosen, room, blocks ? "the %s's weights are %.60s" : "the %s's precision is %.40s", who,
	         blocks ? vn_recording_format(c->cand) : precision ? precision : "");
	vn_text_clean(chosen, room); /* it comes from strangers */
	const vn_status st = blocks ? vn_limits_shipped(blocks, &c->limits, err) : vn_limits_own(precision ? precision : "", vn_recording_family(k->absent == NO_CANDIDATE ? c->ref : c->cand), &c->limits, err);
	return st ? vn_context(err, st, "%s", k->cand) : VN_OK;
}

static bool colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* One of the reports. */
typedef struct one_report {
	const vn_report_form    *form;
	const vn_comparison     *c;
	const vn_story          *story;
	vn_report_options        o;
} one_report;

static vn_status write_report(const void *context, FILE *out, vn_error *err)
{
	const one_report *r = context;
	return r->form->write(r->c, r->story, &r->o, out, err);
}

static vn_status report(const command *k, vn_comparison *c, const char *chosen, vn_error *err)
{
	vn_story  story;
	vn_status st;
	int tells = 0;
	for (int i = 0; i < k->n_reports; i++)
		tells = k->report[i].form->tells > tells ? k->report[i].form->tells : tells;
	st = vn_story_of(c, tells, &story, err);
	for (int i = 0; !st && i < k->n_reports; i++) {
		const one_report r = { .form = k->report[i].form, .c = c, .story = &story,
		                       .o = { .colour = !k->report[i].path && colours(), .all = k->all, .limits_chosen = chosen } };
		st = vn_output_report(k->report[i].path, k->force, write_report, &r, err);
	}
	vn_story_free(&story);
	return st;
}

/* A report may replace a report, with --force, and never what it speaks of. */
static vn_status check_place(const command *k, const char *path, vn_error *err)
{
	const vn_status st = vn_place_check(path, k->force, err);
	if (!st && (vn_same_file(path, k->ref) || vn_same_file(path, k->cand) || vn_same_file(path, k->floor)
	            || vn_same_file(path, k->limits) || vn_same_file(path, k->how.o.baseline)))
		return vn_fail(err, VN_ERR_USAGE, "%s: is read by this comparison; a report does not replace it", path);
	return st;
}

/* A path given twice, or a link to what it should be compared with, always agrees. Two rows of one batch are two runs. */
static vn_status check_itself(const command *k, vn_comparison *c, vn_error *err)
{
	const char *twice = NULL;
	for (int i = 0; i < k->n_ranks && !twice && k->sides.batch_row == k->sides.ref_batch_row; i++) {
		const char *cand = k->n_ranks > 1 ? k->ranks[i] : k->cand;
		twice = vn_same_file(k->ref, cand) ? cand : NULL;
	}
	if (twice && !(k->how.o.allow & VN_ALLOW_ITSELF))
		return vn_fail(err, VN_ERR_USAGE, "%s is the same file as the reference, %s: a recording always agrees with itself "
		               "(--allow itself compares it all the same)", twice, k->ref);
	if (twice)
		vn_lines_add(&c->warnings, "allowed (itself): %s is the same file as the reference: nothing was compared with anything else", twice);
	return VN_OK;
}

static vn_status run(const command *k, vn_comparison *c, vn_error *err)
{
	char chosen[128];
	vn_status st = check_itself(k, c, err);
	if (st)
		return st;
	/* Before an hour of work rather than after it. */
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path && (st = check_place(k, k->report[i].path, err)))
			return st;
	vn_sides sides = k->sides;
	sides.ref = k->ref;
	sides.cand = k->n_ranks > 1 ? (const char *const *)k->ranks : &k->cand;
	sides.n_cand = k->n_ranks;
	sides.floor = k->floor;
	if ((st = vn_sides_open(&sides, c, err))
	    || (st = read_limits(k, c, chosen, sizeof chosen, err)) || (st = vn_compare(c, err)))
		return st;
	return report(k, c, chosen, err);
}

/* Of a pair of which one is not there: what the other has is missing, or extra, and the reports that have a file of their own say so. */
static vn_status run_alone(const command *k, vn_comparison *c, vn_error *err)
{
	const bool candidate = k->absent == NO_REFERENCE;
	command    files = *k;
	char       chosen[128];
	vn_status  st;

	files.n_reports = 0;
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path) {
			if ((st = check_place(k, k->report[i].path, err)))
				return st;
			files.report[files.n_reports++] = k->report[i];
		}
	if ((st = vn_recording_open(candidate ? k->cand : k->ref, candidate ? &c->cand : &c->ref, err))
	    || (st = vn_derive_nothing(candidate ? k->ref : k->cand, candidate ? &c->ref : &c->cand, err))
	    || (st = read_limits(k, c, chosen, sizeof chosen, err)) || (st = vn_compare_alone(c, err)))
		return st;
	return report(&files, c, chosen, err);
}

static bool shows_text(const command *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write == vn_report_text)
			return true;
	return false;
}

/* On stderr, unless the report that a person reads on stdout has them. */
static void warn(const command *k, const vn_comparison *c)
{
	const bool shown = !k->absent && shows_text(k);
	vn_warnings_begin();
	if (shown)
		fflush(stdout); /* before what stderr has to say of it */
	for (int i = 0; i < c->warnings.n; i++)
		if (shown)
			vn_warned("%s", c->warnings.line[i]);
		else
			vn_warn(k->name, "%s", c->warnings.line[i]);
	vn_warnings_end(k->name, c->strict, 0);
}

/* Told apart by the last line of a pair in a folder. */
typedef struct outcome {
	int  status; /* 0, 1, 2 */
	char words[VN_LABEL + 40];
} outcome;

static outcome compare_files(const command *k)
{
	vn_comparison c = { .options = &k->how.o };
	vn_error err = { "" };
	char label[VN_LABEL];
	outcome o = { 0 };

	const vn_status st = k->absent ? run_alone(k, &c, &err) : run(k, &c, &err);
	if (!st)
		warn(k, &c);
	if (st) {
		for (int i = 0; i < c.refusals.n; i++)
			fprintf(stderr, "refused: %s\n", c.refusals.line[i]);
		fprintf(stderr, "vernier %s: %s%s\n", k->name, err.text,
		        c.refusals.n ? " (--allow WORDS overrides by name)" : st == VN_ERR_DAMAGED ? " (--allow digest)" : "");
	}
	o.status = st ? 2 : c.within ? 0 : 1;
	const int first = o.status == 1 ? vn_first_failure(&c) : -1;
	if (k->absent && !st)
		snprintf(o.words, sizeof o.words, "only in the %s%s", k->absent == NO_CANDIDATE ? "reference" : "candidate", o.status ? "" : " (allowed)");
	else if (first >= 0)
		snprintf(o.words, sizeof o.words, "first: %s", vn_label(&c.point[first], label));
	else if (c.strict)
		snprintf(o.words, sizeof o.words, "%d warning%s (--strict)", c.warnings.n, c.warnings.n == 1 ? "" : "s");
	else
		snprintf(o.words, sizeof o.words, st ? "not compared" : c.n_points == 1 ? "%d checkpoint" : "%d checkpoints", c.n_points);
	vn_comparison_close(&c);
	return o;
}

/* ---- folders ------------------------------------------------------------------- */

/* The command for one pair: everything that is a folder with the name behind it. */
static bool command_of(const command *k, const char *name, char (*room)[PATH_MAX], command *one)
{
	const char **path[] = { &one->ref, &one->cand, &one->floor };
	*one = *k;
	for (size_t i = 0; i < sizeof path / sizeof *path; i++)
		if (*path[i]) {
			if (snprintf(room[i], PATH_MAX, "%s/%s", *path[i], name) >= PATH_MAX)
				return false;
			*path[i] = room[i];
		}
	if (k->how.o.baseline && !vn_folder_report(k->how.o.baseline, name, room[3 + MAX_REPORTS]))
		return false;
	one->how.o.baseline = k->how.o.baseline ? room[3 + MAX_REPORTS] : NULL;
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path) {
			if (!vn_folder_report(k->report[i].path, name, room[3 + i]))
				return false;
			one->report[i].path = room[3 + i];
		}
	return true;
}

static outcome compare_pair(const command *k, const vn_folder_pair *p)
{
	static char room[4 + MAX_REPORTS][PATH_MAX];
	outcome o = { 0 };
	command one;
	if (!k->quiet && p->there[0] && p->there[1])
		printf("== %s\n", p->name);
	fflush(stdout); /* before what stderr has to say of it */
	if (command_of(k, p->name, room, &one)) {
		one.absent = !p->there[0] ? NO_REFERENCE : !p->there[1] ? NO_CANDIDATE : NONE_ABSENT;
		return compare_files(&one);
	}
	fprintf(stderr, "vernier %s: %s: the path is too long\n", k->name, p->name);
	o.status = 2;
	return o;
}

static int compare_folders(const command *k)
{
	static const char *const words[] = { "within", "OUTSIDE", "trouble" };
	vn_folder_pairs p;
	vn_error err = { "" };
	int worst = 0, both = 0;

	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write != vn_report_text)
			return vn_complain(k->name, "--format %s of two folders is many files: -o says where", k->report[i].form->name);
	if (k->floor && !vn_is_folder(k->floor)) {
		vn_fail(&err, VN_ERR_USAGE, "--floor %s: for two folders the floors are in a folder as well, by the same names", k->floor);
		p = (vn_folder_pairs) { 0 };
	} else if (vn_same_file(k->ref, k->cand) && !(k->how.o.allow & VN_ALLOW_ITSELF)) {
		vn_fail(&err, VN_ERR_USAGE, "%s is the same folder as the reference, %s: recordings always agree with themselves "
		        "(--allow itself compares them all the same)", k->cand, k->ref);
		p = (vn_folder_pairs) { 0 };
	} else if (!vn_folder_pairs_of(k->ref, k->cand, &p, &err)) {
		outcome *o = calloc((size_t)p.n, sizeof *o);
		for (int i = 0; o && i < p.n; i++) {
			o[i] = compare_pair(k, &p.pair[i]);
			worst = o[i].status > worst ? o[i].status : worst;
			both += p.pair[i].there[0] && p.pair[i].there[1];
		}
		if (!o)
			vn_fail(&err, VN_ERR_NOMEM, "no memory for %d recordings", p.n);
		else if (!both)
			vn_fail(&err, VN_ERR_MISMATCH, "%s and %s have no recording of one name", k->ref, k->cand);
		if (o && !k->quiet)
			for (int i = 0; i < p.n; i++)
				printf("%s%-8s %s  %s\n", i ? "" : "== together\n", words[o[i].status], p.pair[i].name, o[i].words);
		for (int side = 0; o && !k->quiet && side < 2; side++)
			vn_folder_left(side ? k->cand : k->ref, p.folders[side], p.others[side], stdout);
		free(o);
	}
	vn_folder_pairs_free(&p);
	if (*err.text) {
		fprintf(stderr, "vernier %s: %s\n", k->name, err.text);
		return 2;
	}
	return worst;
}

static int compare(command k, int argc, char **argv)
{
	const int said = arguments(&k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	return k.n_ranks == 1 && vn_is_folder(k.ref) && vn_is_folder(k.cand) ? compare_folders(&k) : compare_files(&k).status;
}

int cmd_compare(int argc, char **argv)
{
	return compare((command) { .name = "compare", .sides.batch_row = -1, .sides.ref_batch_row = -1 }, argc, argv);
}

int cmd_explain(int argc, char **argv)
{
	return compare((command) { .name = "explain", .how.o = { .explain = true, .replay = true }, .sides.batch_row = -1, .sides.ref_batch_row = -1 }, argc, argv);
}
