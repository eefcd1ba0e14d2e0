/* cmd_compare.c: vernier compare REF CAND: one recording judged by another. */
#include "compare/commands.h"
#include "compare/chapters/compare.h"
#include "compare/comparison/checkpoint.h"
#include "compare/folders/together.h"
#include "compare/match/folders.h"
#include "compare/many/many_report.h"
#include "compare/many/vote.h"
#include "compare/options.h"
#include "compare/text/output.h"
#include "compare/explain/explain_words.h"
#include "compare/report/report.h"
#include "compare/report/words.h"
#include "compare/match/sides.h"

#include "capture/recording/derive.h"
#include "capture/base/warnings.h"

#include "libref/base/nearest.h"
#include "libref/base/cluster.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPORTS = 8 };

typedef struct command {
	const char *name; /* compare, explain */
	const char *ref, *cand, *limits, *floor;
	char      *const *ranks; /* with --shard: cand and the files of the other ranks */
	char      *const *many;  /* several candidates, cand among them; or NULL */
	int         n_many;
	int         n_ranks;
	struct {
		const vn_report_form *form;
		const char           *path;
		bool                  placed;
	} report[MAX_REPORTS]; /* path NULL: stdout; placed: by -o */
	int         n_reports;
	bool        force, all, quiet, shard, vote, replay, no_replay;
	enum { NONE_ABSENT, NO_REFERENCE, NO_CANDIDATE } absent; /* of a pair of two folders */
	vn_part     part;    /* of the pairs of two folders */
	const char *summary; /* where their outcomes go; or NULL */
	vn_sides    sides; /* names and rows; the files are listed above */
	vn_comparing how;
} command;

static vn_option_taker take_form, take_path, take_part;

static const vn_option options[] = {
	VN_GROUP("Limits"),
	{ "limits", 0, VN_INTO(command, limits), .argument = "FILE",
	  .help = "The limits, a file or the name of shipped limits (q8_0.yaml). Default: the shipped limits for CAND's "
	          "precision; with --allow weights and a CAND from GGUF blocks of Q8_0, Q6_K, Q5_K or Q4_K, the limits "
	          "for the coarsest of these." },
	{ "baseline", 0, VN_INTO(command, how.o.baseline), .argument = "FILE",
	  .help = "FILE is the JSON report of an earlier comparison. A checkpoint that is outside its limits but not "
	          "worse than there (by more than 1 %) is known and does not fail. Whatever is worse, new or newly "
	          "missing fails; improvements are reported. A baseline with another model, prompt, precision, floor or "
	          "limits is refused. For two folders each pair has its own baseline, named as -o names reports. Default: "
	          "none." },
	{ "bitwise", 0, VN_INTO(command, how.o.bitwise),
	  .help = "Use no limits: require equal formats and equal bits in every element, or report the first difference. "
	          "-0 differs from 0; equal NaNs are equal. Use it to test determinism: one engine twice, two numbers of "
	          "threads, two batches." },
	VN_ALLOW_OPTION(command, how),
	VN_STRICT_OPTION(command, how.o.strict, ". A comparison with a warning is outside its limits, in every report too"),
	VN_GROUP("Floor and causes"),
	{ "model", 0, VN_INTO(command, how.o.model), .argument = "MODEL",
	  .help = "Compute the floor by running the reference on these weights in CAND's precision. The floor is the "
	          "error that the number format alone causes, and the unit of limits such as nmse_over_floor. Also run it "
	          "in REF's precision: a REF that differs from what its model computes is outside. Every operation is "
	          "recomputed on CAND's own inputs, too: one that is beyond its own floor is outside (--no-replay leaves "
	          "this out). Default: none." },
	{ "floor", 0, VN_INTO(command, floor), .argument = "FILE",
	  .help = "Take the floor from a recording made by capture ref --precision f16. Cannot be combined with --model. "
	          "Default: none." },
	VN_FLOOR_PRECISION_OPTION(command, how),
	{ "replay", 0, VN_INTO(command, replay),
	  .help = "With --model, recompute every operation on CAND's own inputs. This is the default. The report shows, "
	          "for each operation, the error that it added itself (local, in multiples of its floor), the error of "
	          "its inputs (inherited), and how much it magnified that (gain)." },
	{ "no-replay", 0, VN_INTO(command, no_replay),
	  .help = "With --model, compute the floor alone. Then accumulated error cannot be told from a fault, and an "
	          "operation that is wrong within the limits of its checkpoint passes." },
	{ "explain", 0, VN_INTO(command, how.o.explain),
	  .help = "With --model, find the known mistake that reproduces each origin, as vernier explain does." },
	VN_GROUP("What to compare"),
	VN_POINTS_OPTION(command, how),
	{ "names", 0, VN_COLLECT(command, sides.names, sides.n_names), .argument = "MAP",
	  .help = "Translate CAND's names by a map: hf (modules of transformers), vllm, llama.cpp, or a file "
	          "(vernier help names.md). Several maps are applied in order. Default: names as they are." },
	{ "ref-names", 0, VN_COLLECT(command, sides.ref_names, sides.n_ref_names), .argument = "MAP",
	  .help = "Translate REF's names. Default: names as they are." },
	{ "batch-row", 0, VN_INTO(command, sides.batch_row), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .help =
	      "If CAND holds several prompts (rows of a batch, or prompts one behind the other), compare prompt N, from 0." },
	{ "ref-batch-row", 0, VN_INTO(command, sides.ref_batch_row), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .help = "If REF holds several prompts, compare prompt N, from 0." },
	{ "shard", 0, VN_INTO(command, shard),
	  .help = "The files after REF are the recordings of all ranks of a tensor-parallel run; join them." },
	{ "vote", 0, VN_INTO(command, vote),
	  .help = "There is no reference: the files are 3 to 6 recordings, and at each checkpoint the majority decides. "
	          "Each pair is compared, with the finer precision as the reference." },
	{ "part", 0, .kind = VN_TAKE, .take = take_part, .argument = "I/N|N",
	  .help = "Of two folders, compare only part I of N, so that N processes share the pairs, each about as many bytes. "
	          "With N alone, the scheduler says which part this process takes: SLURM_ARRAY_TASK_ID, "
	          "OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID or JOB_COMPLETION_INDEX. Default: all pairs." },
	VN_THREADS_OPTION(command, how.o.threads),
	VN_GROUP("Reports"),
	{ "format", 0, .kind = VN_TAKE_EACH, .take = take_form, .argument = "FORM", .words = &vn_report_names,
	  .help = "Write a report in this form; all reports come from one pass. junit is JUnit XML, one testcase per "
	          "checkpoint; markdown fits a comment on a pull request; html is one page that needs no network; csv has "
	          "one row per checkpoint. vernier help ci.md shows how CI systems use them. Default: text." },
	{ "output", 'o', .kind = VN_TAKE_EACH, .take = take_path, .argument = "PATH",
	  .help = "The file for the last --format. Without a --format, the ending of PATH selects the form: .json, .xml "
	          "for JUnit, .md for Markdown, .html, .csv, otherwise text. - is stdout. Default: stdout." },
	{ "summary", 0, VN_INTO(command, summary), .argument = "FILE",
	  .help = "Of two folders, write the outcome of every pair to FILE as JSON (schema vernier-folders/1). vernier merge "
	          "joins the files of all parts. Default: none." },
	{ "force", 0, VN_INTO(command, force),
	  .help = "Replace older reports. Files that vernier did not write are never replaced." },
	{ "all", 0, VN_INTO(command, all),
	  .help =
	      "Print a line for every checkpoint, including those within limits, with the largest relative error too." },
	{ "quiet", 'q', VN_INTO(command, quiet),
	  .help =
	      "Print nothing on stdout. The exit status gives the verdict, and -o writes reports. Warnings go to stderr." },
};

#define COMMAND(word, what, more, needs) \
	{ \
		.name = word, \
		.synopsis = "REF CAND" more " " needs "[OPTION]...\nREF --shard RANK0 RANK1... " needs "[OPTION]...", \
		.about = what, .option = options, .n = sizeof options / sizeof *options, \
		.status = "0 within limits, 1 outside, 2 trouble" \
	}

const vn_command vn_compare_command = COMMAND(
	"compare",
	"Judge the recording CAND by the recording REF, or two folders of recordings, paired by file name "
	"(vernier help compare.md).\n"
	"With several candidates (at most 16), each is judged alone. One report has a column for each, and names where "
	"each diverges from REF and which "
	"one disagrees with the others. A candidate that cannot be compared is reported; the others are still judged. The "
	"exit status is the worst of all.",
	"...", "");
const vn_command vn_explain_command = COMMAND(
	"explain",
	"Compare, and name the known mistake that reproduces each origin, a checkpoint where the error begins "
	"(vernier help explain.md).\n"
	"What it needs: MODEL, the weights that both runs used (a HuggingFace directory or a GGUF file); REF and CAND, "
	"recordings of the same tokens; and in CAND the inputs of the operations to explain (a recording of all "
	"checkpoints has them). It runs the model on the CPU several times.\n"
	"The options are those of vernier compare; --explain and --replay are always on.",
	"", "--model MODEL ");

/* --format opens a report and -o gives the path of the last one. -o alone opens a report by its suffix. */
static vn_status add_form(command *k, const vn_report_form *form, vn_error *err)
{
	if (k->n_reports == MAX_REPORTS)
		return vn_fail(err, VN_ERR_USAGE, "more than %d reports", MAX_REPORTS);
	k->report[k->n_reports].placed = false;
	k->report[k->n_reports++].form = form;
	return VN_OK;
}

static vn_status take_form(void *to, const vn_option *option, const char *name, vn_error *err)
{
	const vn_report_form *form = vn_report_by_name(name);
	(void)option;
	if (form)
		return add_form(to, form, err);
	vn_nearest near;
	vn_nearest_start(&near, name);
	vn_nearest_try_words(&near, vn_report_names);
	return vn_fail(err, VN_ERR_USAGE, "--format takes %s, not '%s'%s", vn_report_names, name, vn_nearest_hint(&near));
}

static vn_status take_part(void *to, const vn_option *option, const char *text, vn_error *err)
{
	command *k = to;
	(void)option;
	return vn_part_read(text, &k->part, err);
}

static vn_status take_path(void *to, const vn_option *option, const char *path, vn_error *err)
{
	command *k = to;
	(void)option;
	if (!*path)
		return vn_fail(err, VN_ERR_USAGE, "-o needs a path");
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path && strcmp(k->report[i].path, path) == 0)
			return vn_fail(err, VN_ERR_USAGE, "two reports cannot go to one file, %s", path);
	if (k->n_reports == 0 || k->report[k->n_reports - 1].placed) {
		const vn_status st = add_form(k, vn_report_by_suffix(path), err);
		if (st)
			return st;
	}
	k->report[k->n_reports - 1].path = strcmp(path, "-") == 0 ? NULL : path;
	k->report[k->n_reports - 1].placed = true;
	return VN_OK;
}

/* Rejects options that cannot be combined with several candidates. Returns 0, or 2 after an error message. */
static int several(command *k, int n, char *const *file)
{
	if (strcmp(k->name, "explain") == 0)
		return vn_complain(
			k->name,
			"one candidate at a time, not %d: vernier compare REF A B... --model MODEL --explain takes several", n);
	if (n > VN_MANY_MOST)
		return vn_complain(k->name, "at most %d candidates, not %d; of one run's ranks? --shard joins them",
		                   VN_MANY_MOST, n);
	if (k->how.o.baseline)
		return vn_complain(k->name, "--baseline is of one candidate, not of %d: compare each alone", n);
	for (int i = 0; i < k->n_reports; i++)
		if (!vn_many_form(k->report[i].form->name))
			return vn_complain(
				k->name, "--format %s is of one candidate, not of %d: text, json, markdown and html have a column each",
				k->report[i].form->name, n);
	for (int i = 0; i <= n; i++)
		if (vn_is_folder(file[i]))
			return vn_complain(
				k->name,
				"%s is a folder: of several candidates each is a file; vernier compare %s FOLDER compares two folders",
				file[i], i ? "FOLDER" : file[i]);
	k->many = k->vote ? file : file + 1;
	k->n_many = k->vote ? n + 1 : n;
	return 0;
}

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int arguments(command *k, int argc, char **argv)
{
	int st = vn_options_read(strcmp(k->name, "explain") == 0 ? &vn_explain_command : &vn_compare_command, argc, argv,
	                         k);
	if (st)
		return st;
	if (k->shard && argc - optind < 3)
		return vn_complain(k->name, "--shard takes a reference and the recordings of two ranks or more; %d given",
		                   argc - optind);
	if (k->shard && argc - optind > 1 + VN_MOST_RANKS)
		return vn_complain(k->name, "more than %d ranks", VN_MOST_RANKS);
	if (k->vote && (k->shard || k->sides.n_ref_names || k->floor))
		return vn_complain(k->name, "--vote has no reference: %s does not go with it",
		                   k->shard   ? "--shard"
		                   : k->floor ? "--floor"
		                              : "--ref-names");
	if (k->vote && (argc - optind < VN_VOTE_FEWEST || argc - optind > VN_VOTE_MOST))
		return vn_complain(k->name, "--vote takes %d to %d recordings, not %d", VN_VOTE_FEWEST, VN_VOTE_MOST,
		                   argc - optind);
	if (!k->shard && argc - optind < 2)
		return vn_complain(k->name, "two recordings are needed; %d given", argc - optind);
	if (!k->shard && argc - optind > 2 && (st = several(k, argc - optind - 1, argv + optind)))
		return st;
	if (k->how.o.bitwise && (k->limits || k->floor || k->how.o.model))
		return vn_complain(k->name, "--bitwise uses no limits and no floor: give one or the other");
	if (k->how.o.explain && !k->how.o.model)
		return vn_complain(k->name, "the weights are needed to explain: give --model MODEL");
	if (k->no_replay && (k->replay || k->how.o.explain))
		return vn_complain(k->name, "--no-replay leaves out what %s needs: give one or the other",
		                   k->how.o.explain ? "an explanation" : "--replay");
	if (k->replay && !k->how.o.model)
		return vn_complain(k->name, "--replay recomputes operations with the weights: give --model too");
	k->how.o.replay = k->no_replay                    ? VN_REPLAY_NEVER
	                  : k->replay || k->how.o.explain ? VN_REPLAY_ALWAYS
	                                                  : VN_REPLAY_SAME;
	if ((st = vn_check_comparing(k->name, &k->how, k->floor)))
		return st;
	k->ref = argv[optind];
	k->cand = argv[optind + 1];
	k->ranks = argv + optind + 1;
	k->n_ranks = k->shard ? argc - optind - 1 : 1;
	if (k->n_reports == 0 && !k->quiet)
		k->report[k->n_reports++].form = vn_report_by_name("text");
	for (int i = 0; k->quiet && i < k->n_reports; i++)
		if (!k->report[i].path)
			return vn_complain(k->name, "--quiet leaves nothing for stdout: --format %s needs -o PATH",
			                   k->report[i].form->name);
	return 0;
}

/* The shipped limits for quantised weights against unquantised ones: quantisation costs more than any choice of
 * precision. */
static const char *block_limits(const command *k, const vn_comparison *c)
{
	const char *ref = vn_recording_format(c->opened.ref), *cand = vn_recording_format(c->opened.cand);
	return (k->how.o.allow & VN_ALLOW_WEIGHTS) && cand && !(ref && strcmp(ref, cand) == 0)
	       ? vn_limits_of_blocks(cand, vn_recording_family(c->opened.cand)) : NULL;
}

static vn_status read_limits(const command *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	if (k->how.o.bitwise) {
		snprintf(chosen, room, "--bitwise");
		return vn_limits_bitwise(&c->request.limits, err);
	}
	if (k->limits) {
		snprintf(chosen, room, "--limits");
		return vn_limits_open(k->limits, &c->request.limits, err);
	}
	/* Without a candidate, use the reference's precision, weights and model. */
	const char *who = k->absent == NO_CANDIDATE ? "reference" : "candidate";
	const char *precision = vn_facts_get(vn_recording_run(k->absent == NO_CANDIDATE ? c->opened.ref : c->opened.cand),
	                                     "precision");
	const char *blocks = block_limits(k, c);
	snprintf(chosen, room, blocks ? "the %s's weights are %.60s" : "the %s's precision is %.40s", who,
	         blocks ? vn_recording_format(c->opened.cand) : precision ? precision : "");
	vn_text_clean(chosen, room); /* it comes from strangers */
	const vn_status st = blocks ? vn_limits_shipped(blocks, &c->request.limits, err)
	                            : vn_limits_own(
									  precision ? precision : "",
									  vn_recording_family(k->absent == NO_CANDIDATE ? c->opened.ref : c->opened.cand),
									  &c->request.limits, err);
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

/* Two names may be one file (r.json and ./r.json), which shows when the first report is written. */
static vn_status check_apart(const command *k, int i, vn_error *err)
{
	for (int j = 0; j < i; j++)
		if (vn_same_file(k->report[i].path, k->report[j].path))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s: is the file of another report, %s; give each report a file of its own",
			               k->report[i].path, k->report[j].path);
	return VN_OK;
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
		                       .o = { .colour = !k->report[i].path && colours(), .all = k->all,
		                       	.limits_chosen = chosen } };
		if (!(st = check_apart(k, i, err)))
			st = vn_output_report(k->report[i].path, k->force, write_report, &r, err);
	}
	vn_story_free(&story);
	return st;
}

/* With --force a report may replace an older report, but never one of its own inputs. */
static vn_status check_place(const command *k, const char *path, vn_error *err)
{
	for (int i = 0; i < k->n_many; i++)
		if (vn_same_file(path, k->many[i]))
			return vn_fail(err, VN_ERR_USAGE, "%s: is an input of this comparison; a report cannot replace it", path);
	if (vn_same_file(path, k->ref) || vn_same_file(path, k->cand) || vn_same_file(path, k->floor)
	    || vn_same_file(path, k->limits) || vn_same_file(path, k->how.o.baseline))
		return vn_fail(err, VN_ERR_USAGE, "%s: is an input of this comparison; a report cannot replace it", path);
	return vn_place_check(path, VN_PLACE_REPORT, k->force, err);
}

/* A path given twice, or a link to the other side, always agrees. Two rows of one batch are two different runs. */
static vn_status check_itself(const command *k, vn_comparison *c, vn_error *err)
{
	const char *twice = NULL;
	for (int i = 0; i < k->n_ranks && !twice && k->sides.batch_row == k->sides.ref_batch_row; i++) {
		const char *cand = k->n_ranks > 1 ? k->ranks[i] : k->cand;
		twice = vn_same_file(k->ref, cand) ? cand : NULL;
	}
	if (twice && !(k->how.o.allow & VN_ALLOW_ITSELF))
		return vn_fail(err, VN_ERR_USAGE, "%s is the same file as the reference, %s: a recording always agrees with "
		               "itself (--allow itself compares it all the same)", twice, k->ref);
	if (twice)
		vn_lines_add(&c->result.warnings,
		             "allowed (itself): %s is the same file as the reference: the comparison shows nothing", twice);
	return VN_OK;
}

static void add_pair(char again[VN_SHELL_LINE], const char *option, const char *value)
{
	vn_shell_add(again, VN_SHELL_LINE, option);
	vn_shell_add(again, VN_SHELL_LINE, value);
}

static void say_allowed(unsigned allow, char again[VN_SHELL_LINE])
{
	char words[300] = "", one[40];
	unsigned set;

	for (const char *p = vn_allow_names; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|')) {
		snprintf(one, sizeof one, "%.*s", (int)strcspn(p, "|"), p);
		set = 0;
		if (!vn_allow_parse(one, &set) && (allow & set))
			vn_text_add(words, sizeof words, "%s%s", *words ? "," : "", one);
	}
	if (*words)
		add_pair(again, "--allow", words);
}

/* Writes the options that select the files and the part to compare, for the commands that a report proposes. */
static void say_again(const command *k, char again[VN_SHELL_LINE])
{
	char number[24];

	snprintf(again, VN_SHELL_LINE, "."); /* the shell helper appends */
	vn_shell_add(again, VN_SHELL_LINE, k->ref);
	if (k->shard)
		vn_shell_add(again, VN_SHELL_LINE, "--shard");
	for (int i = 0; i < k->n_ranks; i++)
		vn_shell_add(again, VN_SHELL_LINE, k->n_ranks > 1 ? k->ranks[i] : k->cand);
	for (int i = 0; i < k->sides.n_names; i++)
		add_pair(again, "--names", k->sides.names[i]);
	for (int i = 0; i < k->sides.n_ref_names; i++)
		add_pair(again, "--ref-names", k->sides.ref_names[i]);
	for (int i = 0; i < k->how.o.n_points; i++)
		add_pair(again, "--points", k->how.point[i]);
	snprintf(number, sizeof number, "%" PRId64, (int64_t)k->sides.batch_row);
	if (k->sides.batch_row >= 0)
		add_pair(again, "--batch-row", number);
	snprintf(number, sizeof number, "%" PRId64, (int64_t)k->sides.ref_batch_row);
	if (k->sides.ref_batch_row >= 0)
		add_pair(again, "--ref-batch-row", number);
	if (k->limits)
		add_pair(again, "--limits", k->limits);
	say_allowed(k->how.o.allow, again);
	memmove(again, again + (*again ? 2 : 0), strlen(again) + 1 - (*again ? 2 : 0));
}

/* Checks the output paths before the comparison, which may take an hour. */
static vn_status check_places(const command *k, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_reports && !st; i++)
		if (k->report[i].path)
			st = check_place(k, k->report[i].path, err);
	return st;
}

static vn_status judge(const command *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	vn_sides  sides = k->sides;
	vn_status st;
	sides.ref = k->ref;
	sides.cand = k->n_ranks > 1 ? (const char *const *)k->ranks : &k->cand;
	sides.n_cand = k->n_ranks;
	sides.floor = k->floor;
	if ((st = vn_sides_open(&sides, c, err)) || (st = read_limits(k, c, chosen, room, err)))
		return st;
	return vn_compare(c, err);
}

static vn_status run(const command *k, vn_comparison *c, vn_error *err)
{
	char chosen[128];
	vn_status st;
	if ((st = check_itself(k, c, err)) || (st = check_places(k, err)) || (st = judge(k, c, chosen, sizeof chosen, err)))
		return st;
	return report(k, c, chosen, err);
}

/* Reports a pair with one file absent: everything in the other file is missing or extra, and each report with a
 * file of its own says so. */
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
	if ((st = vn_recording_open(candidate ? k->cand : k->ref, candidate ? &c->opened.cand : &c->opened.ref, err))
	    || (st = vn_derive_nothing(candidate ? k->ref : k->cand, candidate ? &c->opened.ref : &c->opened.cand, err))
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

/* Prints warnings to stderr, unless the text report on stdout shows them. */
static void warn(const command *k, const vn_comparison *c)
{
	const bool shown = !k->absent && shows_text(k);
	vn_warnings_begin();
	if (shown)
		fflush(stdout); /* keeps stdout before stderr */
	for (int i = 0; i < c->result.warnings.n; i++)
		if (shown)
			vn_warned("%s", c->result.warnings.line[i]);
		else
			vn_warn(k->name, "%s", c->result.warnings.line[i]);
	vn_warnings_end(k->name, c->result.strict, 0);
}

/* The result of one comparison: its exit status, and its words in the summary of a folder. */
typedef struct outcome {
	int       status; /* 0, 1, 2 */
	vn_status why;    /* of 2 */
	char words[VN_LABEL + 40];
} outcome;

/* Prints the verdict and the reports written, in one line, when no report goes to stdout. */
static void say_written(const command *k, const vn_comparison *c)
{
	char     counts[VN_WORDS], start[VN_WORDS];
	vn_lines why = { 0 };

	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path)
			return;
	vn_say_start(c, start);
	vn_say_explanations(c, &why);
	printf("%s: %s%s%s%s%s%s Written:", vn_say_verdict(c), vn_say_counts(c, counts), *start ? " " : "", start,
	       why.n ? " Explained: " : "", why.n ? why.line[0] : "", why.n ? "." : "");
	vn_lines_free(&why);
	for (int i = 0; i < k->n_reports; i++)
		printf("%s %s", i ? "," : "", k->report[i].path);
	putchar('\n');
}

typedef struct refused {
	const vn_comparison *c;
	const char          *why;
} refused;

static vn_status write_refused(const void *context, FILE *out, vn_error *err)
{
	const refused *r = context;
	return vn_report_refused(r->c, r->why, out, err);
}

/* A program that reads stdout learns why there is no verdict. Files are written of a comparison only. */
static void report_refused(const command *k, const vn_comparison *c, const char *why)
{
	vn_error err;

	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write == vn_report_json)
			vn_output_report(NULL, false, write_refused, &(refused) { c, why }, &err);
}

/* Of two models everything differs; the first lines say so. */
static void say_refusals(const vn_lines *refusals)
{
	enum { MOST = 12 };

	for (int i = 0; i < refusals->n && (i < MOST || refusals->n == MOST + 1); i++)
		fprintf(stderr, "refused: %s\n", refusals->line[i]);
	if (refusals->n > MOST + 1)
		fprintf(stderr, "refused: and for %d more reasons, which --format json lists\n", refusals->n - MOST);
}

static outcome compare_files(const command *k)
{
	vn_comparison c = { .request.options = &k->how.o };
	vn_error err = { "" };
	char label[VN_LABEL], again[VN_SHELL_LINE];
	outcome o = { 0 };

	say_again(k, again);
	c.request.again = *again ? again : NULL;
	const vn_status st = k->absent ? run_alone(k, &c, &err) : run(k, &c, &err);
	if (!st)
		warn(k, &c);
	if (st) {
		say_refusals(&c.result.refusals);
		fprintf(stderr, "vernier %s: %s%s\n", k->name, err.text,
		        st == VN_ERR_DAMAGED ? " (--allow digest)" : "");
	}
	if (st && c.result.refusals.n)
		report_refused(k, &c, err.text);
	o.status = st ? 2 : c.result.within ? 0 : 1;
	o.why = st;
	if (!st && !k->quiet && !k->absent)
		say_written(k, &c);
	const int first = o.status == 1 ? vn_first_failure(&c) : -1;
	if (k->absent && !st)
		snprintf(o.words, sizeof o.words, "only in the %s%s", k->absent == NO_CANDIDATE ? "reference" : "candidate",
		         o.status ? "" : " (allowed)");
	else if (first >= 0)
		snprintf(o.words, sizeof o.words, "first: %s", vn_label(&c.result.point[first], label));
	else if (c.result.strict)
		snprintf(o.words, sizeof o.words, "%d warning%s (--strict)", c.result.warnings.n,
		         c.result.warnings.n == 1 ? "" : "s");
	else
		snprintf(o.words, sizeof o.words,
		         st                       ? "not compared"
		         : c.result.n_points == 1 ? "%d checkpoint"
		                                  : "%d checkpoints",
		         c.result.n_points);
	vn_comparison_close(&c);
	return o;
}

/* ---- several candidates ---------------------------------------------------------- */

/* A candidate that is the same file as the reference or another candidate always agrees with it. */
static vn_status check_twice(const command *k, vn_error *err)
{
	for (int i = 0; i < k->n_many && !(k->how.o.allow & VN_ALLOW_ITSELF); i++) {
		if (!k->vote && vn_same_file(k->ref, k->many[i]))
			return vn_fail(err, VN_ERR_USAGE, "%s is the same file as the reference, %s: a recording always agrees "
			               "with itself (--allow itself compares it all the same)", k->many[i], k->ref);
		for (int j = 0; j < i; j++)
			if (vn_same_file(k->many[j], k->many[i]))
				return vn_fail(err, VN_ERR_USAGE,
				               "%s is given twice, as candidates %c and %c (--allow itself compares it all the same)",
				               k->many[i], vn_many_letter(j), vn_many_letter(i));
	}
	return VN_OK;
}

/* Compares the reference with one candidate. */
static vn_status judge_next(const command *k, vn_many *m, vn_error *err)
{
	vn_comparison c = { .request.options = &k->how.o };
	vn_error      why = { "" };
	char          chosen[128] = "", again[VN_SHELL_LINE];

	say_again(k, again);
	c.request.again = *again ? again : NULL;
	vn_status judged = check_itself(k, &c, &why);
	if (!judged)
		judged = judge(k, &c, chosen, sizeof chosen, &why);
	const vn_status st = vn_many_add(m, k->cand, &c, chosen, judged, &why, err);
	vn_comparison_close(&c);
	return st;
}

/* Compares each candidate in turn with the reference. */
static vn_status judge_many(const command *k, vn_many *m, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_many && !st; i++) {
		command one = *k;
		one.cand = k->many[i];
		one.ranks = &k->many[i];
		st = judge_next(&one, m, err);
	}
	return st;
}

/* Digits of the format the recording was computed in; float32's when it does not say or cannot be opened. */
static int digits_of(const char *path)
{
	vn_recording *r = NULL;
	vn_policy     policy;
	vn_error      err;
	const char   *word = vn_recording_open(path, &r, &err) ? NULL : vn_facts_get(vn_recording_run(r), "precision");
	const int     digits = vn_dtype_digits(word && !vn_policy_read("precision", word, &policy, &err) ? policy.storage
	                                                                                                 : VN_F32);

	vn_recording_close(r);
	return digits;
}

/* Compares every pair of recordings, in the order of vote.h. */
static vn_status judge_pairs(const command *k, vn_many *m, vn_error *err)
{
	vn_status st = VN_OK;
	int       digits[VN_VOTE_MOST];

	for (int i = 0; i < k->n_many; i++)
		digits[i] = digits_of(k->many[i]);
	for (int i = 0; i < k->n_many; i++)
		for (int j = i + 1; j < k->n_many && !st; j++) {
			command   one = *k;
			const int ref = digits[j] > digits[i] ? j : i, cand = i + j - ref;
			one.ref = k->many[ref];
			one.cand = k->many[cand];
			one.ranks = &k->many[cand];
			one.sides.n_ref_names = k->sides.n_names;
			memcpy(one.sides.ref_names, k->sides.names, sizeof one.sides.ref_names);
			st = judge_next(&one, m, err);
		}
	return st;
}

typedef struct many_report {
	vn_many_report *write;
	const vn_many  *m;
	vn_many_options o;
} many_report;

static vn_status write_many(const void *context, FILE *out, vn_error *err)
{
	const many_report *r = context;
	return r->write(r->m, &r->o, out, err);
}

/* Prints to stderr what the report on stdout leaves out. */
static void warn_many(const command *k, const vn_many *m)
{
	const bool shown = shows_text(k);
	fflush(stdout);
	for (int i = 0; i < m->n; i++) {
		const vn_many_candidate *x = &m->candidate[i];
		for (int j = 0; j < x->refusals.n; j++)
			fprintf(stderr, "refused: candidate %c: %s\n", vn_many_letter(i), x->refusals.line[j]);
		if (x->status == 2 &&
		    (i == 0 || !m->candidate[i - 1].trouble || strcmp(m->candidate[i - 1].trouble, x->trouble) != 0))
			fprintf(stderr, "vernier %s: candidate %c: %s\n", k->name, vn_many_letter(i), x->trouble);
		for (int j = 0; j < x->warnings.n && !shown; j++)
			fprintf(stderr, "vernier %s: warning: candidate %c: %s\n", k->name, vn_many_letter(i), x->warnings.line[j]);
	}
}

static vn_status report_many(const command *k, const vn_many *m, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_reports && !st; i++) {
		const many_report r = { vn_many_form(k->report[i].form->name), m,
			{ .colour = !k->report[i].path && colours(), .all = k->all } };
		if (!(st = check_apart(k, i, err)))
			st = vn_output_report(k->report[i].path, k->force, write_many, &r, err);
	}
	return st;
}

/* Prints the verdict and the reports written, in one line, when no report goes to stdout. */
static void say_many_written(const command *k, const vn_many *m)
{
	char who[VN_MANY_WHO];

	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path)
			return;
	printf("%s: %s. Written:", vn_many_say_all(m), vn_many_say_who(m, who));
	for (int i = 0; i < k->n_reports; i++)
		printf("%s %s", i ? "," : "", k->report[i].path);
	putchar('\n');
}

static bool wants_json(const command *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (vn_many_form(k->report[i].form->name) == vn_many_json)
			return true;
	return false;
}

static bool compared_any(const vn_many *m)
{
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].status < 2)
			return true;
	return false;
}

/* Writes the result in every requested format. */
static vn_status tell_many(const command *k, const vn_many *m, vn_error *err)
{
	const bool any = compared_any(m);
	const vn_status st = any ? report_many(k, m, err) : VN_OK;
	if (st)
		return st;
	if (!k->quiet && any)
		say_many_written(k, m);
	warn_many(k, m);
	return VN_OK;
}

static vn_status vote(const command *k, vn_many *pairs, int *status, vn_error *err)
{
	vn_vote   v = { .many = { 0 } };
	vn_status st = judge_pairs(k, pairs, err);

	if (!st && !(st = vn_vote_count(&v, pairs, k->many, k->n_many, k->how.o.strict, err)))
		st = tell_many(k, &v.many, err);
	*status = vn_many_status(&v.many);
	vn_vote_finish(&v);
	return st;
}

static int compare_many(const command *k)
{
	vn_many   m = { 0 };
	vn_error  err = { "" };
	int       status = 2;
	vn_status st;

	if (!(st = check_twice(k, &err)) && !(st = check_places(k, &err)) &&
	    !(st = vn_many_begin(&m, k->ref, wants_json(k), &err))) {
		if (k->vote)
			st = vote(k, &m, &status, &err);
		else if (!(st = judge_many(k, &m, &err)) && !(st = tell_many(k, &m, &err)))
			status = vn_many_status(&m);
	}
	if (st)
		fprintf(stderr, "vernier %s: %s\n", k->name, err.text);
	vn_many_finish(&m);
	return st ? 2 : status;
}

/* ---- folders ------------------------------------------------------------------- */

/* The command for one pair: each path that is a folder gets the file name appended. */
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
	fflush(stdout); /* keeps stdout before stderr */
	if (command_of(k, p->name, room, &one)) {
		one.absent = !p->there[0] ? NO_REFERENCE : !p->there[1] ? NO_CANDIDATE : NONE_ABSENT;
		return compare_files(&one);
	}
	fprintf(stderr, "vernier %s: %s: the path is too long\n", k->name, p->name);
	o.status = 2;
	return o;
}

/* Everything on the command line that changes a verdict: parts that were asked something else are not joined. */
static void say_asked(const command *k, char asked[2 * VN_SHELL_LINE])
{
	char again[VN_SHELL_LINE];

	say_again(k, again);
	snprintf(asked, 2 * VN_SHELL_LINE, "%s|%s|%s|%s|%d%d%d%d%d", again, k->how.o.model ? k->how.o.model : "",
	         k->floor ? k->floor : "", k->how.o.baseline ? k->how.o.baseline : "", k->how.o.bitwise, k->how.o.strict,
	         k->how.o.explain, (int)k->how.o.replay, (int)k->how.o.allow);
}

/* Checks what is given for two folders. */
static vn_status check_folders(const command *k, vn_error *err)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write != vn_report_text)
			return vn_fail(err, VN_ERR_USAGE, "--format %s of two folders writes several files: say where with -o",
			               k->report[i].form->name);
	if (k->floor && !vn_is_folder(k->floor))
		return vn_fail(err, VN_ERR_USAGE, "--floor %s: for two folders, give a folder of floors with the same file names",
		               k->floor);
	if (vn_same_file(k->ref, k->cand) && !(k->how.o.allow & VN_ALLOW_ITSELF))
		return vn_fail(err, VN_ERR_USAGE, "%s is the same folder as the reference, %s: recordings always agree with "
		               "themselves (--allow itself compares them all the same)", k->cand, k->ref);
	return k->summary ? vn_place_check(k->summary, VN_PLACE_REPORT, k->force, err) : VN_OK;
}

static bool is_transient(const outcome *o)
{
	return o->why == VN_ERR_NOMEM || o->why == VN_ERR_INTERRUPTED;
}

/* The pairs of two folders, to be shared by several processes. */
typedef struct shared {
	const command         *k;
	const vn_folder_pairs *p;
} shared;

enum { TRANSIENT = 1 << 8 }; /* added to the status of a piece */

static void compare_piece(void *context, int i, vn_cluster_answer *a)
{
	const shared *s = context;
	const outcome o = compare_pair(s->k, &s->p->pair[i]);

	a->status = o.status | (is_transient(&o) ? TRANSIENT : 0);
	a->text[VN_CLUSTER_WORDS] = strdup(o.words);
}

static const char *name_piece(void *context, int i)
{
	return ((const shared *)context)->p->pair[i].name;
}

/* Compares the pairs together with the other processes that mpirun started. Only the first has any in *t. */
static vn_status share_pairs(const command *k, const vn_folder_pairs *p, const int *order, vn_together *t, bool *first,
                             bool *transient, vn_error *err)
{
	shared               s = { k, p };
	vn_cluster_answer   *a = calloc((size_t)p->n, sizeof *a);
	const vn_cluster_job job = { k->name, "give each its part, with --part N --summary FILE, and join them with vernier merge",
		p->n, order, t->work.hex, compare_piece, name_piece, &s };
	vn_status            st = a ? vn_cluster_share(&job, a, first, err)
	                            : vn_fail(err, VN_ERR_NOMEM, "no memory for %d recordings", p->n);

	for (int i = 0; !st && *first && i < p->n; i++) {
		fputs(a[i].text[VN_CLUSTER_OUT], stdout);
		fflush(stdout);
		fputs(a[i].text[VN_CLUSTER_ERR], stderr);
		st = vn_together_add(t, p->pair[i].name, p->pair[i].there, a[i].status & ~TRANSIENT,
		                     a[i].text[VN_CLUSTER_WORDS], err);
		*transient = *transient || a[i].status & TRANSIENT;
	}
	for (int i = 0; a && i < p->n; i++)
		for (int text = 0; text < VN_CLUSTER_TEXTS; text++)
			free(a[i].text[text]);
	free(a);
	return st;
}

/* Compares the pairs of this part. *first: the outcome is complete; false in a process that only helped the first of
 * several. *transient: a pair was not compared for want of memory, or was interrupted. */
static vn_status compare_pairs(const command *k, const vn_folder_pairs *p, vn_together *t, bool *first, bool *transient,
                               vn_error *err)
{
	char      asked[2 * VN_SHELL_LINE];
	bool     *mine = calloc((size_t)p->n, sizeof *mine);
	int      *order = calloc((size_t)p->n, sizeof *order);
	vn_status st;

	say_asked(k, asked);
	st = mine && order ? vn_together_begin(t, k->ref, k->cand, p, k->part, asked, mine, order, err)
	                   : vn_fail(err, VN_ERR_NOMEM, "no memory for %d recordings", p->n);
	const bool alone = k->part.of || vn_cluster_size() == 1;
	if (!st && !alone)
		st = share_pairs(k, p, order, t, first, transient, err);
	for (int i = 0; !st && alone && i < p->n; i++)
		if (mine[i]) {
			const outcome o = compare_pair(k, &p->pair[i]);
			st = vn_together_add(t, p->pair[i].name, p->pair[i].there, o.status, o.words, err);
			*transient = *transient || is_transient(&o);
		}
	free(order);
	free(mine);
	return st;
}

/* A pair that lacked memory, or whose report could not be printed, is to be compared again; a summary would say
 * that its files are at fault. mark: vn_trouble_mark before the first pair. */
static vn_status write_summary(const command *k, const vn_together *t, unsigned mark, bool transient, vn_error *err)
{
	const vn_status st = vn_trouble_since(mark, k->summary, err);

	if (st)
		return st;
	if (transient || ferror(stdout))
		return vn_fail(err, VN_ERR_IO, "%s: not written: %s", k->summary,
		               transient ? "a pair could not be compared for want of memory" : "standard output cannot be written");
	return vn_output_report(k->summary, k->force, vn_together_json, t, err);
}

static vn_status have_a_pair(const command *k, const vn_folder_pairs *p, vn_error *err)
{
	for (int i = 0; i < p->n; i++)
		if (p->pair[i].there[0] && p->pair[i].there[1])
			return VN_OK;
	return vn_fail(err, VN_ERR_MISMATCH, "%s and %s have no recording with the same name", k->ref, k->cand);
}

static int compare_folders(const command *k)
{
	vn_folder_pairs p = { 0 };
	vn_together     t = { .n = 0 };
	vn_error        err = { "" };
	const unsigned  mark = vn_trouble_mark();
	vn_status       st = check_folders(k, &err);
	bool            transient = false, first = true;

	if (!st && !(st = vn_folder_pairs_of(k->ref, k->cand, &p, &err)) &&
	    !(st = compare_pairs(k, &p, &t, &first, &transient, &err)) && first) {
		if (!k->quiet)
			vn_together_text(&t, stdout);
		if (!(st = have_a_pair(k, &p, &err)) && k->summary)
			st = write_summary(k, &t, mark, transient, &err);
	}
	const int worst = vn_together_status(&t);
	vn_together_free(&t);
	vn_folder_pairs_free(&p);
	if (st)
		fprintf(stderr, "vernier %s: %s\n", k->name, err.text);
	return st ? 2 : worst;
}

static int compare(command k, int argc, char **argv)
{
	const int said = arguments(&k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	if (!k.many && k.n_ranks == 1 && vn_is_folder(k.ref) && vn_is_folder(k.cand))
		return compare_folders(&k);
	if (k.part.of || k.summary)
		return vn_complain(k.name, "%s is for two folders of recordings", k.part.of ? "--part" : "--summary");
	return k.many ? compare_many(&k) : compare_files(&k).status;
}

int cmd_compare(int argc, char **argv)
{
	return compare((command) { .name = "compare", .sides.batch_row = -1, .sides.ref_batch_row = -1 }, argc, argv);
}

int cmd_explain(int argc, char **argv)
{
	return compare(
		(command) { .name = "explain", .how.o.explain = true, .sides.batch_row = -1, .sides.ref_batch_row = -1 }, argc,
		argv);
}
