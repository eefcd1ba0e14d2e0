/* cmd_compare.c: vernier compare REF CAND: one recording judged by another. */
#include "compare/commands.h"
#include "compare/compare_line.h"
#include "compare/explain/explain.h"
#include "compare/many/many_report.h"
#include "compare/many/vote.h"
#include "compare/match/folders.h"

#include "capture/file/reporting.h"
#include "libref/base/alloc.h"
#include "libref/base/cluster.h"
#include "libref/base/nearest.h"
#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static vn_option_taker take_form, take_path, take_part;

/* The sentences of a form in the help. */
#define ABOUT(name, ending, tells, many, keeps, about, ends) about
#define ENDS(name, ending, tells, many, keeps, about, ends)  ends
#define FORMS                                                VN_REPORT_FORMS(ABOUT, , )
#define ENDINGS                                              VN_REPORT_FORMS(ENDS, , )

static const vn_option options[] = {
	VN_GROUP("Limits"),
	{ "limits", 0, VN_INTO(vn_compare_line, limits), .argument = "FILE", .changes_verdict = true, .repeated = true,
	  .set_without = "bitwise",
	  .help = "The limits, a file or the name of shipped limits (q8_0.yaml). Default: the shipped limits for CAND's "
	          "precision; with --allow weights and a CAND from GGUF blocks of Q8_0, Q6_K, Q5_K or Q4_K, the limits "
	          "for the coarsest of these." },
	{ "baseline", 0, VN_INTO(vn_compare_line, how.o.baseline), .argument = "FILE", .changes_verdict = true,
	  .help = "FILE is the JSON report of an earlier comparison. A checkpoint that is outside its limits but not worse "
	          "than there (by more than 1 %) is known and does not fail. Whatever is worse, new or newly missing "
	          "fails; improvements are reported. A baseline with another model, prompt, precision, floor or limits is "
	          "refused. For two folders each pair has its own baseline, named as -o names reports. Default: none." },
	{ "bitwise", 0, VN_INTO(vn_compare_line, how.o.bitwise), .changes_verdict = true, .not_with = "limits|floor|model",
	  .because = "uses no limits and no floor",
	  .help = "Use no limits and no floor. The formats, and the bits of every element, must be equal; the report "
	          "names the first difference. -0 differs from 0; equal NaNs are equal. This tests determinism: the same "
	          "run again, with another number of threads, or in another batch.",
	  .only = "compare" },
	VN_ALLOW_OPTION(vn_compare_line, how.o.allow, ""),
	VN_STRICT_OPTION(vn_compare_line, how.o.strict,
	                 ". A comparison with a warning is outside its limits, in every report too"),
	VN_GROUP("Floor and causes"),
	{ "model", 0, VN_INTO(vn_compare_line, how.o.model), .argument = "MODEL", .changes_verdict = true,
	  .set_without = "floor|replayed|bitwise|vote",
	  .help = "The weights that both runs used, a HuggingFace directory or a GGUF file. Required.", .only = "explain" },
	{ "model", 0, VN_INTO(vn_compare_line, how.o.model), .argument = "MODEL", .changes_verdict = true,
	  .set_without = "floor|replayed|bitwise|vote",
	  .help =
	      "Compute the floor by running the reference on these weights in CAND's precision. The floor is the error "
	      "that the number format alone causes, and the unit of limits such as nmse_over_floor. The reference is also "
	      "run in REF's precision: a REF that differs from what its model computes is outside. Every operation is "
	      "also recomputed on CAND's own inputs: an operation whose own error is too large for rounding is outside "
	      "(--no-replay leaves this out). Default: none.",
	  .only = "compare" },
	{ "floor", 0, VN_INTO(vn_compare_line, floor), .argument = "FILE", .changes_verdict = true,
	  .help = "Take the floor from this recording, which vernier capture ref made in CAND's precision. Cannot be "
	          "combined with --model. Default: none.",
	  .only = "compare" },
	{ "replayed", 0, VN_INTO(vn_compare_line, replayed), .argument = "FILE", .changes_verdict = true,
	  .not_with = "model|floor|bitwise|shard|vote|names|ref-names|batch-row|ref-batch-row",
	  .help = "For recordings of any PyTorch module: judge each operation by FILE, in which python -m vernier_parity "
	          "replay wrote what PyTorch computes from CAND's own recorded tensors. For folders, a folder of such "
	          "files. Cannot be combined with --model, --floor or options that change names or rows. Default: none.",
	  .only = "compare" },
	VN_PRECISION_OPTION(vn_compare_line, how),
	VN_FLOOR_PRECISION_OPTION(vn_compare_line, how),
	{ "replay", 0, VN_INTO(vn_compare_line, replay), .changes_verdict = true,
	  .help = "With --model, recompute every operation on CAND's own inputs. This is the default. The report shows, "
	          "for each operation, the error that it added itself (local, in multiples of its floor), the error of "
	          "its inputs (inherited), and how much it magnified that (gain).",
	  .only = "compare" },
	{ "no-replay", 0, VN_INTO(vn_compare_line, no_replay), .changes_verdict = true, .not_with = "replay|explain",
	  .because = "leaves the replay out",
	  .help = "With --model, compute only the floor. Then accumulated error cannot be told from a fault, and an "
	          "operation that is wrong within the limits of its checkpoint passes.",
	  .only = "compare" },
	{ "replay-routing", 0, VN_INTO(vn_compare_line, routing), .changes_verdict = true,
	  .help = "With --model, of a mixture of experts: run the reference with CAND's router_ids and router_weights, and "
	          "note what part of the error is routing and what part is arithmetic.",
	  .only = "compare" },
	{ "explain", 0, VN_INTO(vn_compare_line, explain), .changes_verdict = true,
	  .help =
	      "With --model or --replayed, find the known mistake that reproduces each origin, as vernier explain does.",
	  .only = "compare" },
	VN_GROUP("What to compare"),
	VN_POINTS_OPTION(vn_compare_line, how),
	VN_NAMES_OPTION(vn_compare_line, sides.names, sides.n_names, "CAND's", .set_without = "replayed"),
	VN_REF_NAMES_OPTION(vn_compare_line, sides.ref_names, sides.n_ref_names, "REF's"),
	{ "batch-row", 0, VN_INTO(vn_compare_line, sides.batch_row), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .changes_verdict = true, .repeated = true,
	  .help =
	      "If CAND holds several prompts (rows of a batch, or prompts one after another), compare prompt N, from 0." },
	{ "ref-batch-row", 0, VN_INTO(vn_compare_line, sides.ref_batch_row), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .changes_verdict = true, .repeated = true, .help = "If REF holds several prompts, compare prompt N, from 0." },
	{ "shard", 0, VN_INTO(vn_compare_line, shard),
	  .help = "The files after REF are the recordings of all ranks of a tensor-parallel run; join them. To compare "
	          "several runs, name each by a folder of its ranks (tp2/), or by its files joined by commas "
	          "(r0.h5,r1.h5); a single file is then a run of its own." },
	{ "vote", 0, VN_INTO(vn_compare_line, vote), .not_with = "shard|ref-names|floor", .because = "has no reference",
	  .help = "There is no reference: the files are 3 to 6 recordings, and at each checkpoint the majority decides. "
	          "Each pair is compared, with the finer precision as the reference.",
	  .only = "compare" },
	{ "part", 0, .kind = VN_TAKE, .take = take_part, .argument = "I/N|N",
	  .help = "For folders: compare only part I of N. N processes divide the pairs, so that each reads about the "
	          "same number of bytes. With N alone, a variable of the scheduler selects the part: SLURM_ARRAY_TASK_ID, "
	          "OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID or JOB_COMPLETION_INDEX. Default: all pairs." },
	{ "trust-digests", 0, VN_INTO(vn_compare_line, how.o.trust), .changes_verdict = true, .repeated = true,
	  .help = "Do not read tensors whose digest, format and shape are equal on both sides. The report counts such "
	          "checkpoints as equal and has no metrics of them. Default: read every number and check it against its "
	          "digest, so that a file that was changed or damaged is refused. With --model every number is read.",
	  .only = "compare" },
	VN_THREADS_OPTION(vn_compare_line, how.o.threads),
	VN_GROUP("Reports"),
	{ "format", 0, .kind = VN_TAKE_EACH, .take = take_form, .argument = "FORM", .words = &vn_report_names,
	  .set_without = "output|quiet",
	  .help = "Write a report in this form; all reports come from one pass. " FORMS
	          ". vernier help usage.md shows how CI systems use them. Default: text." },
	{ "output", 'o', .kind = VN_TAKE_EACH, .take = take_path, .argument = "PATH",
	  .help = "The file for the last --format. Without a --format, the ending of PATH selects the form: " ENDINGS
	          "; .txt, .log or none for text. - is stdout. Default: stdout." },
	{ "summary", 0, VN_INTO(vn_compare_line, summary), .argument = "FILE",
	  .help = "For folders: write the outcome of every pair to FILE as JSON (schema vernier-folders/1). vernier merge "
	          "joins the files of all parts. Default: none." },
	VN_REPORTING_FORCE(vn_compare_line, force, "report"),
	{ "all", 0, VN_INTO(vn_compare_line, all),
	  .help =
	      "Print a line for every checkpoint, including those within limits, with the largest relative error too." },
	VN_COLOUR_OPTION(vn_compare_line, colour),
	{ "open", 0, VN_INTO(vn_compare_line, open),
	  .help = "Show the HTML report of -o in the browser (xdg-open; BROWSER names another program)." },
	VN_PAGER_OPTION(vn_compare_line, no_pager),
	VN_NO_CONFIG_OPTION,
	{ "quiet", 'q', VN_INTO(vn_compare_line, quiet),
	  .help =
	      "Print nothing on stdout. The exit status gives the verdict, and -o writes reports. Warnings go to stderr." },
};

#define COMMAND(word, what, more, needs, other, shown) \
	{ \
		.name = word, \
		.synopsis = "REF CAND" more " " needs "[OPTION]...\nREF --shard RANK0 RANK1... " needs "[OPTION]...", \
		.about = what, .twin = other, VN_OPTION_TABLE(options), .examples = shown, .tells = true, \
		.status = "0 within limits, 1 outside, 2 trouble" \
	}

const vn_command vn_compare_command = COMMAND(
	"compare",
	"Judge the recording CAND by the recording REF, or two folders of recordings, paired by file name "
	"(vernier help compare.md).\n"
	"With several candidates (at most 16; files, or folders beside a folder of references), each is judged alone. One "
	"report has a column for each, and names where each diverges from REF and which one disagrees with the others. A "
	"candidate that cannot be compared is reported; the others are still judged. The exit status is the worst of all.",
	"...", "", NULL,
	"vernier compare ref.h5 cand.h5 --model MODEL\n"
	"vernier compare ref.h5 cand.h5 --model MODEL --quiet -o report.md");
const vn_command vn_explain_command = COMMAND(
	"explain",
	"Compare, and name the known mistake that reproduces each origin, a checkpoint whose own operation is "
	"at fault (vernier help explain.md).\n"
	"What it needs: MODEL, the weights that both runs used (a HuggingFace directory or a GGUF file); REF and CAND, "
	"recordings of the same tokens; and in CAND the inputs of the operations to explain (a recording of all "
	"checkpoints has them). It runs the model on the CPU several times.\n"
	"Every operation is recomputed on CAND's own inputs.",
	"", "--model MODEL ", "compare",
	"vernier explain ref.h5 cand.h5 --model MODEL\n"
	"vernier explain ref.h5 cand.h5 --model MODEL -o report.html");

/* --format opens a report and -o gives the path of the last one. -o alone opens a report by its
 * suffix; a --format after "-o -" names its form. */
static vn_status add_form(vn_compare_line *k, const vn_report_form *form, vn_error *err)
{
	if (k->n_reports == VN_COMPARE_REPORTS)
		return vn_fail(err, VN_ERR_USAGE, "more than %d reports", VN_COMPARE_REPORTS);
	k->report[k->n_reports].placed = k->report[k->n_reports].unsaid = false;
	k->report[k->n_reports++].form = form;
	return VN_OK;
}

static vn_status take_form(void *to, const vn_option *option, const char *name, vn_error *err)
{
	const vn_report_form *form = vn_report_by_name(name);
	(void)option;
	vn_compare_line *k = to;
	const int        last = k->n_reports - 1;
	if (form && last >= 0 && k->report[last].unsaid && !k->report[last].path) { /* "-o - --format json" is one report */
		k->report[last].form = form;
		k->report[last].unsaid = false;
		return VN_OK;
	}
	if (form)
		return add_form(to, form, err);
	char       all[120];
	vn_nearest near;
	vn_nearest_start(&near, name);
	vn_nearest_try_words(&near, vn_report_names);
	if (vn_report_meant(name))
		vn_nearest_settle(&near, vn_report_meant(name)->name);
	return vn_fail(err, VN_ERR_USAGE, "--format takes %s, not '%s'%s", vn_text_words(vn_report_names, all, sizeof all),
	               name, vn_nearest_hint(&near));
}

static vn_status take_part(void *to, const vn_option *option, const char *text, vn_error *err)
{
	vn_compare_line *k = to;
	(void)option;
	return vn_folder_part_read(text, &k->part, err);
}

static vn_status take_path(void *to, const vn_option *option, const char *path, vn_error *err)
{
	vn_compare_line *k = to;
	(void)option;
	if (!*path)
		return vn_fail(err, VN_ERR_USAGE, "-o needs a path");
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path && strcmp(k->report[i].path, path) == 0)
			return vn_fail(err, VN_ERR_USAGE, "two reports cannot go to one file, %s", path);
	if (k->n_reports == 0 || k->report[k->n_reports - 1].placed) {
		const vn_report_form *form;
		vn_status             st = vn_report_by_ending(path, &form, err);
		if (st || (st = add_form(k, form, err)))
			return st;
		k->report[k->n_reports - 1].unsaid = true;
	}
	k->report[k->n_reports - 1].path = strcmp(path, "-") == 0 ? NULL : path;
	k->report[k->n_reports - 1].placed = true;
	return VN_OK;
}

/* Rejects models among recordings, as in "vernier explain REF CAND MODEL", and proposes what to
 * type. Folders alone are folders of recordings. Returns 0, or 2 after an error message. */
static int no_model(const vn_compare_line *k, int n, char *const *file)
{
	const char *model = NULL, *other = NULL;
	bool        folders = true;
	char        line[VN_SHELL_LINE];

	for (int i = 0; i < n; i++) {
		folders = folders && vn_match_is_folder(file[i]);
		*(vn_is_model(file[i]) ? &model : &other) = file[i];
	}
	if (!model || folders || k->shard)
		return 0;
	vn_shell_begin(line);
	if (n > 2) {
		vn_shell_option(line, "--model", model);
	} else if (n == 2 && !other) {
		vn_shell_add(line, sizeof line, "vernier");
		vn_shell_add(line, sizeof line, "weights");
		for (int i = 0; i < n; i++)
			vn_shell_add(line, sizeof line, file[i]);
	} else {
		vn_shell_add(line, sizeof line, "vernier");
		vn_shell_add(line, sizeof line, "capture");
		vn_shell_option(line, "ref", model);
		if (other)
			vn_shell_option(line, "--ids-from", other);
		else
			vn_shell_option(line, "--prompt", "TEXT");
		vn_shell_option(line, "-o", "FILE");
	}
	vn_shell_end(line);
	return vn_complain(k->name, "%s is a model, not a recording%s%s", model, *line ? "; try:" : "", line);
}

/* Rejects options that cannot be combined with several candidates. Returns 0,
 * or 2 after an error message. */
static int check_several(vn_compare_line *k, int n, char *const *file)
{
	char all[120];

	if (strcmp(k->name, "explain") == 0)
		return vn_complain(
			k->name,
			"one candidate at a time, not %d: vernier compare REF A B... --model MODEL --explain takes several", n);
	if (n > VN_MANY_MOST)
		return vn_complain(k->name, "at most %d candidates, not %d; if they are the ranks of one run, add --shard",
		                   VN_MANY_MOST, n);
	if (k->how.o.baseline)
		return vn_complain(k->name, "--baseline takes one candidate, not %d: compare each candidate alone", n);
	if (vn_option_origin("format") && k->n_reports && !vn_many_by_name(k->report[0].form->name))
		k->n_reports = 0;
	for (int i = 0; i < k->n_reports; i++)
		if (!vn_many_by_name(k->report[i].form->name))
			return vn_complain(k->name, "--format %s takes one candidate, not %d: several take %s",
			                   k->report[i].form->name, n, vn_text_words(vn_many_names, all, sizeof all));
	for (int i = 0; i <= n && !k->set; i++)
		if (vn_match_is_folder(file[i]) != (!k->vote && vn_match_is_folder(file[0])))
			return k->vote
			           ? vn_complain(k->name, "%s is a folder: --vote takes files", file[i])
			           : vn_complain(
							 k->name, "%s is a %s and %s a %s: give folders alone, or files alone%s", file[0],
							 vn_match_is_folder(file[0]) ? "folder" : "file", file[i],
							 vn_match_is_folder(file[i]) ? "folder" : "file",
							 vn_match_is_folder(file[0]) ? "" : "; add --shard if a folder holds the ranks of one run");
	k->many = k->vote ? file : file + 1;
	k->n_many = k->vote ? n + 1 : n;
	return 0;
}

/* With --shard, files alone are the ranks of one candidate; else each argument is a candidate.
 * Returns 0, or 2 after an error message. */
static int read_ranks(vn_compare_line *k, int n, char **file)
{
	vn_error err;
	bool     sets = false;

	for (int i = 0; i < n; i++)
		sets = sets || vn_rank_files_named(file[i + 1]);
	if (n >= 0 && vn_match_is_folder(file[0]))
		return vn_complain(k->name, "--shard: the reference, %s, is a folder; give a recording", file[0]);
	if (!sets && n < 2)
		return vn_complain(k->name, "--shard takes a reference and the recordings of two ranks or more; %d given",
		                   n + 1);
	if (sets && n > VN_MANY_MOST)
		return vn_complain(k->name, "at most %d candidates, not %d", VN_MANY_MOST, n);
	k->ranks = file + 1;
	k->n_ranks = n;
	k->set = sets ? vn_alloc_zero((size_t)n, sizeof *k->set) : NULL;
	for (int i = 0; i < n && k->set; i++) {
		k->n_sets = i + 1;
		if (vn_rank_files_of(file[i + 1], &k->set[i], &err))
			return vn_complain(k->name, "--shard: %s", err.text);
		k->ranks = k->set[i].file;
		k->n_ranks = k->set[i].n;
		if (k->n_ranks > VN_MOST_RANKS)
			break;
	}
	if (k->n_ranks > VN_MOST_RANKS)
		return vn_complain(k->name, "more than %d ranks", VN_MOST_RANKS);
	k->n_ranks = n > 1 && sets ? 1 : k->n_ranks;
	return 0;
}

/* Without --model, vernier explain takes the model that a recording names, if it is here. Whether
 * it is the same, the digests of its weights tell, as of any --model. Returns 0, or 2 after an
 * error message. */
static int take_recorded_model(vn_compare_line *k)
{
	const char *const path[] = { k->ref, k->cand };
	bool              module = false;
	char              gone[1000] = "";
	vn_error          err;

	for (int i = 0; i < 2 && !k->how.o.model; i++) {
		vn_recording *r = NULL;
		if (vn_match_is_folder(path[i]))
			continue;
		if (vn_recording_open(path[i], &r, &err)) {
			vn_say(stderr, "vernier %s: %s\n", k->name, err.text);
			return 2;
		}
		if (vn_recording_model_here(r)) {
			k->how.o.model = strdup(vn_recording_model_here(r)); /* until the program ends */
			k->model_from = path[i];
		} else if (vn_recording_model_named(r)) {
			snprintf(gone, sizeof gone, " (that of %.300s, %.600s, is not here)", path[i], vn_recording_model_named(r));
		}
		module = module || vn_recording_run_plan(r);
		vn_recording_close(r);
	}
	if (module)
		return vn_complain(k->name, "%s: a recording of any PyTorch module: python -m vernier_parity explain MODEL %s",
		                   k->cand, k->cand);
	return k->how.o.model ? 0 : vn_complain(k->name, "the weights are needed to explain: give --model MODEL%s", gone);
}

/* The candidate alone: says how the reference is made. Returns 2. */
static int one_recording(const vn_compare_line *k, int n, char *const *file)
{
	char          line[VN_SHELL_LINE];
	vn_recording *r = NULL;
	vn_error      err;

	if (n == 0 || k->vote || access(file[0], R_OK) != 0)
		return vn_complain(k->name, "two recordings are needed, the reference first: vernier %s REF CAND", k->name);
	if (!k->how.o.model && !vn_match_is_folder(file[0]) && vn_recording_open(file[0], &r, &err))
		return vn_complain(k->name, "two recordings are needed, and %s", err.text);
	const char *model = k->how.o.model ? k->how.o.model : vn_recording_model_here(r);
	vn_shell_begin(line);
	vn_shell_add(line, sizeof line, "vernier");
	vn_shell_add(line, sizeof line, "capture");
	vn_shell_option(line, "ref", model ? model : "MODEL");
	vn_shell_option(line, "--like", file[0]);
	vn_shell_option(line, "-o", "REF.h5");
	vn_shell_end(line);
	vn_recording_close(r);
	return vn_complain(k->name, "two recordings are needed, and only %s is given; its reference is made by:%s", file[0],
	                   line);
}

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(vn_compare_line *k, int argc, char **argv)
{
	int st = vn_options_read(k->command, argc, argv, k);
	if (st)
		return st;
	if (k->vote && (argc - optind < VN_VOTE_FEWEST || argc - optind > VN_VOTE_MOST))
		return vn_complain(k->name, "--vote takes %d to %d recordings, not %d", VN_VOTE_FEWEST, VN_VOTE_MOST,
		                   argc - optind);
	if ((st = no_model(k, argc - optind, argv + optind)))
		return st;
	if (!k->shard && argc - optind < 2)
		return one_recording(k, argc - optind, argv + optind);
	k->n_ranks = 1;
	k->ranks = argv + optind + 1;
	if (k->shard && (st = read_ranks(k, argc - optind - 1, argv + optind)))
		return st;
	if ((!k->shard || k->set) && argc - optind > 2 && (st = check_several(k, argc - optind - 1, argv + optind)))
		return st;
	k->ref = argv[optind];
	k->cand = k->ranks[0];
	if (k->replayed && k->many)
		return vn_complain(k->name, "--replayed takes one candidate");
	if (k->explain && !k->how.o.model && !k->replayed && (st = take_recorded_model(k)))
		return st;
	if (k->replay && !k->how.o.model)
		return vn_complain(k->name, "--replay recomputes operations with the weights: give --model too");
	if (k->routing && !k->how.o.model)
		return vn_complain(k->name, "--replay-routing runs the reference with CAND's experts: give --model too");
	k->how.o.replay_routing = k->routing;
	k->how.o.explain = k->explain ? &vn_catalogue_explainer : NULL;
	const bool always = k->replay || (k->explain && k->how.o.model);
	k->how.o.replay = k->no_replay ? VN_REPLAY_NEVER : always ? VN_REPLAY_ALWAYS : VN_REPLAY_SAME;
	if ((st = vn_options_check_comparing(k->name, &k->how, k->floor)))
		return st;
	if (k->n_reports == 0 && !k->quiet)
		k->report[k->n_reports++].form = vn_report_by_name("text");
	for (int i = 0; k->quiet && i < k->n_reports; i++)
		if (!k->report[i].path)
			return vn_complain(k->name, "--quiet leaves nothing for stdout: --format %s needs -o PATH",
			                   k->report[i].form->name);
	return 0;
}

/* The place of the HTML report among the reports; -1: none is written to a file. */
static int html_report(const vn_compare_line *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path && k->report[i].form->write == vn_report_html)
			return i;
	return -1;
}

/* Shows the page that was written. A verdict does not depend on a browser. */
static void open_page(const vn_compare_line *k)
{
	const char *own = getenv("BROWSER"), *program = own && *own ? own : "xdg-open";
	char *const words[] = { (char *)program, (char *)k->report[html_report(k)].path, NULL };
	pid_t       child;
	const int   why = posix_spawnp(&child, program, NULL, NULL, words, environ);

	if (why)
		vn_say(stderr, "vernier %s: note: --open: %s: %s\n", k->name, program, strerror(why));
	else
		waitpid(child, NULL, 0);
}

static int compare_files(vn_compare_line *k, int argc, char **argv)
{
	const int said = parse_arguments(k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	if (!k->no_pager && vn_cluster_size() == 1) /* mpirun gives each process a terminal */
		vn_printed_page();
	if (!k->shard && vn_match_is_folder(k->ref) && vn_match_is_folder(k->cand))
		return vn_compare_folders(k);
	if (!k->shard && !k->many &&
	    vn_options_check_folders(k->name, k->ref, k->cand,
	                             vn_match_is_folder(k->cand) ? "; add --shard if it holds the ranks of one run" : ""))
		return 2;
	if (k->part.of || k->summary)
		return vn_complain(k->name, "%s is for folders of recordings", k->part.of ? "--part" : "--summary");
	if (k->open && html_report(k) < 0)
		return vn_complain(k->name, "--open shows an HTML report: add -o FILE.html");
	const int status = k->many ? vn_compare_many(k).status : vn_compare_pair(k).status;
	if (k->open && status < 2)
		open_page(k);
	return status;
}

static int run_compare(vn_compare_line k, int argc, char **argv)
{
	const int status = compare_files(&k, argc, argv);

	for (int i = 0; i < k.n_sets; i++)
		vn_rank_files_free(&k.set[i]);
	free(k.set);
	return status;
}

int cmd_compare(int argc, char **argv)
{
	return run_compare(
		(vn_compare_line) {
			.name = "compare", .command = &vn_compare_command, .sides.batch_row = -1, .sides.ref_batch_row = -1 },
		argc, argv);
}

int cmd_explain(int argc, char **argv)
{
	return run_compare((vn_compare_line) { .name = "explain",
	                                       .command = &vn_explain_command,
	                                       .explain = true,
	                                       .sides.batch_row = -1,
	                                       .sides.ref_batch_row = -1 },
	                   argc, argv);
}
