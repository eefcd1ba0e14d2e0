/* cmd_capture.c: `vernier capture`: run a model and record its checkpoints. */
#include "capture/run/arguments.h"
#include "capture/base/option_rows.h"
#include "capture/commands.h"
#include "capture/run/interrupt.h"
#include "capture/run/ids_from.h"
#include "capture/run/prompt.h"
#include "capture/run/prompts.h"
#include "capture/run/session.h"
#include "capture/run/hybrid.h"
#include "capture/base/warnings.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/options.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATTERNS = 256, MOST_MAPS = 16 };
enum { EXPERTS_MAPPED, EXPERTS_LOADED }; /* --experts */

typedef struct options {
	const char       *engine, *model, *prompts, *forced_text, *forced_from, *like;
	vn_prompt_source  source;
	bool              strict;
	const char       *pattern[MOST_PATTERNS], *precise[MOST_PATTERNS], *forced[MOST_PATTERNS];
	const char       *inject[MOST_PATTERNS];
	int               n_inject;
	const char       *names[MOST_MAPS];
	int               n_names;
	int               kv, experts; /* -1: not given */
	int64_t           seed;        /* -1: not given */
	const char       *tokens, *layers;
	vn_engine_options run;
	vn_recipe         recipe;
} options;

static vn_option_taker take_precision;

static const vn_option known[] = {
	VN_GROUP("What to run"),
	{ "prompt", 0, VN_INTO(options, source.text), .argument = "TEXT|@FILE",
	  .help =
	      "Run this text, or the contents of a file or pipe, through the model's tokenizer: tokenizer.json, "
	      "vocab.json with merges.txt, or the vocabulary of the GGUF file. Every byte of a file counts, a final "
	      "newline too. If TEXT itself begins with @, write @@. Bytes that are not UTF-8 become tokens too. The text "
	      "may hold special tokens, such as <|endoftext|>." },
	VN_NO_SPECIAL_OPTION(options, source.no_special, "prompt"),
	VN_IDS_OPTIONS(options, source),
	{ "prompts", 0, VN_INTO(options, prompts), .argument = "FILE", .not_with = "prompt|ids|ids-from|force-ids",
	  .because = "gives the tokens of every run",
	  .help = "Run every prompt of FILE, and write the recording of each to NAME.h5 in the folder that -o names. The "
	          "model is loaded once. Each line of FILE is a prompt or, in JSONL, an object: {\"name\": \"a\", "
	          "\"prompt\": \"Hello\", \"decode\": 16, \"temperature\": 0.7, \"seed\": 1}. \"ids\": [1,2,3] may "
	          "replace \"prompt\". A prompt without a name gets its number as its name: 001. A complete recording "
	          "is kept if an earlier run made it of the same prompt, model and reference, with the same engine, limits "
	          "and choice of checkpoints; its warnings are given again. So the same command, without --force, "
	          "continues an interrupted run." },
	{ "like", 0, VN_INTO(options, like), .argument = "REC", .because = "follows a recording",
	  .not_with = "prompt|ids|ids-from|no-special-tokens|prompts|force-ids|force-ids-from|decode|points|layers|tokens",
	  .help = "Follow the recording REC of any engine: run its tokens in its calls (chunks of the prompt, decoded "
	          "tokens, calls of which nothing was kept), and record of each call the checkpoints and rows that REC "
	          "has. This replaces the options that choose tokens and checkpoints." },
	VN_NAMES_OPTION(options, names, n_names, "with --like, REC's", .set_without = "", .set_with = "like",
	                .needs = "like"),
	VN_GROUP("What to record"),
	{ "output", 'o', VN_INTO(options, recipe.path), .argument = "FILE",
	  .help = "Write the recording to FILE; with --prompts, the recordings into this folder. Required. A file gets its "
	          "name only when it is complete." },
	VN_RECORDING_FORCE(options, recipe.force),
	{ "points", 0, VN_COLLECT(options, pattern, recipe.n_patterns), .argument = "GLOB",
	  .help = "Record only these checkpoints. Default: every checkpoint that the engine computes anyway. Attention "
	          "scores and probabilities, the activated gate, and the cached keys and values are recorded only if a "
	          "GLOB matches them." },
	{ "against", 0, VN_INTO(options, recipe.against), .argument = "REF",
	  .help = "Judge every checkpoint by the recording REF during the run, and write only those outside their limits, "
	          "each with the inputs of its operation. Of a checkpoint that agrees, FILE keeps only the name, the "
	          "digest and the measured error; vernier compare REF FILE judges it again from these. No floor is known "
	          "here, so the limits that hold without one apply. With --prompts, REF is a folder with a recording "
	          "NAME.h5 of each prompt." },
	{ "limits", 0, VN_INTO(options, recipe.limits), .argument = "LIMITS", .set_without = "", .set_with = "against",
	  .needs = "against", .help = "With --against: the limits file. Default: the limits of the run's precision." },
	{ "stop-at-first", 0, VN_INTO(options, recipe.stop_at_first), .needs = "against",
	  .help = "With --against: end the run at the first checkpoint outside its limits. The recording is complete and "
	          "says where the run was stopped." },
	{ "layers", 0, VN_INTO(options, layers), .argument = "A-B",
	  .help = "Record only these layers, and all checkpoints outside layers. Default: all layers." },
	{ "tokens", 0, VN_INTO(options, tokens), .argument = "last|A-B",
	  .help = "Record only the rows of these tokens. Default: all tokens." },
	VN_GROUP("How to run it"),
	{ "precision", 0, .kind = VN_TAKE_EACH, .take = take_precision, .argument = "P", .words = &vn_policy_names,
	  .help =
	      "The format for storing and accumulating. On the CPU, f16, f16-acc16 and bf16 emulate an engine that stores "
	      "these formats (-acc16: and accumulates in half); such a run is what --floor of vernier compare takes. The "
	      "ggml precisions emulate llama.cpp's CPU backend, which rounds the inputs of a product to suit the format "
	      "of the weight (-kv16: keys and values in f16; -flash16: flash attention too). The GPU has f16, f16-acc16 "
	      "and f32. Default: f32 on the CPU, f16 on the GPU. P@GLOB: run the operations that make these checkpoints "
	      "in P, weights included; if several match an operation, the last applies. A value is converted where an "
	      "operation of another precision reads it, and only there. On the GPU, a second precision stores all weights "
	      "a second time, and values pass through the host." },
	VN_MTP_OPTION(options, run.mtp),
	VN_THREADS_OPTION(options, run.threads),
	{ "experts", 0, VN_CHOOSE(options, experts), .argument = "mapped|loaded",
	  .help = "On the CPU, experts stay on disk until a token is routed to them (mapped); a fault needs all of them. "
	          "loaded: read them first. The results are the same, bit for bit. Default: mapped." },
	{ "inject", 0, VN_COLLECT(options, inject, n_inject), .argument = "FAULT@GLOB",
	  .help =
	      "Make a known mistake on purpose, in the operations that make these checkpoints: R1@layer2.*, or R1@layer2 "
	      "for every operation of the layer that the fault fits. vernier points --faults lists the faults. Some are "
	      "mistakes of recording: the run stays correct, and the recording is wrong." },
	VN_STRICT_OPTION(options, strict, ". The recording is written all the same"),
	VN_NO_CONFIG_OPTION,
	VN_GROUP("Decoding"),
	{ "decode", 0, VN_INTO(options, recipe.decode), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .help = "Decode N more tokens after the prompt, one step each: step.1 to step.N. Greedy decoding takes the "
	          "highest score; of equal scores, the lowest id. An end-of-text token does not end the run. Default: 0." },
	{ "temperature", 0, VN_INTO(options, recipe.temperature), VN_RANGE(0, 1000), .argument = "T",
	  .needs = "decode|prompts",
	  .help = "With T above 0, draw tokens from the scores divided by T. Default: 0, greedy." },
	{ "seed", 0, VN_INTO(options, seed), VN_RANGE(0, INT64_MAX), .argument = "S", .needs = "decode|prompts",
	  .help = "Seed for the draws. Default: 0. The same seed draws the same tokens on one engine, for any number of "
	          "threads. Two engines diverge where rounding changes a choice." },
	VN_FORCE_IDS_OPTIONS(options, forced_text, forced_from, ", instead of --decode",
	                     " With --prompts, REC is a folder with a recording NAME.h5 of each prompt; the decode of a "
	                     "prompt, if given, must be the number of tokens there."),
	VN_GROUP("The GPU"),
	VN_DEVICE_OPTION(options, run.device),
	VN_KV_OPTION(options, kv),
	{ "block-size", 0, VN_INTO(options, run.block), VN_RANGE(1, 65536), .argument = "N",
	  .help = "Tokens per block, with --kv paged. Default: 16." },
	{ "force-ref", 0, VN_COLLECT(options, forced, run.n_force_ref), .argument = "GLOB",
	  .help = "In a GPU run, compute the operations that make these checkpoints on the CPU reference, in the run's "
	          "precision. All other operations run on the GPU. If all are forced, the result is the reference run, "
	          "bit for bit. A GLOB that matches nothing is refused. See also the environment variable "
	          "VERNIER_FORCE_REF." },
	{ "validate", 0, VN_INTO(options, run.validate),
	  .help = "Run with the Vulkan validation layers, synchronisation validation included. A message fails the run." },
	{ "guard", 0, VN_INTO(options, run.guard),
	  .help = "Fill every buffer with poison before the run and surround it with guard zones. A tensor that was not "
	          "written, or was written beyond its end, is named." },
};

const vn_command vn_capture_command = {
	.name = "capture",
	.synopsis = "ref|gpu MODEL -o FILE --prompt TEXT|--ids LIST|--ids-from REC|--like REC "
				"[OPTION]...\nref|gpu MODEL -o FOLDER --prompts FILE [OPTION]...",
	.about = "Run a model on the CPU reference or on the GPU and record its checkpoints.",
	VN_OPTION_TABLE(known),
	.model = true,
	.examples = "vernier capture ref MODEL --prompt @prompt.txt -o ref.h5\n"
				"vernier capture ref MODEL --ids-from cand.h5 --precision f16 -o ref16.h5",
	.status = "0 recorded, 1 recorded with a warning (--strict), 2 trouble",
};

static vn_status read_tokens(const char *text, vn_recipe *r, vn_error *err)
{
	if (strcmp(text, "last") == 0) {
		r->rows = VN_ROWS_LAST;
		return VN_OK;
	}
	r->rows = VN_ROWS_RANGE;
	if (vn_arguments_read_range("--tokens", text, &r->first, &r->last, NULL))
		return vn_fail(err, VN_ERR_USAGE,
		               "--tokens takes last or a range like 0-3, not '%s' (what is recorded; --ids: what is run)",
		               text);
	return VN_OK;
}

static vn_status read_layers(const char *text, vn_recipe *r, vn_error *err)
{
	int64_t         a = 0, b = 0;
	const vn_status st = vn_arguments_read_range("--layers", text, &a, &b, err);
	r->first_layer = (int)a;
	r->last_layer = (int)b;
	return st;
}

static vn_status take_precision(void *to, const vn_option *option, const char *value, vn_error *err)
{
	options *o = to;
	(void)option;
	return vn_take_precision(value, &o->recipe.precision, o->precise, &o->run.n_precise, MOST_PATTERNS, err);
}

/* Parses option values that are more than a number or a word. */
static vn_status read_values(options *o, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < o->recipe.n_patterns && !st; i++)
		st = vn_glob_check(o->pattern[i], err);
	if (!st && o->layers)
		st = read_layers(o->layers, &o->recipe, err);
	if (!st && o->tokens)
		st = read_tokens(o->tokens, &o->recipe, err);
	return st;
}

static bool is_engine(const char *word)
{
	return strcmp(word, "ref") == 0 || strcmp(word, "gpu") == 0;
}

/* Checks the options against each other. */
static vn_status check_options(options *o, int argc, char **argv, vn_error *err)
{
	if (argc - optind == 1 && is_engine(argv[optind]) && !o->model)
		return vn_fail(err, VN_ERR_USAGE, "the model is missing: vernier capture %s MODEL ...", argv[optind]);
	if (argc - optind == 1 && !is_engine(argv[optind]))
		return vn_fail(err, VN_ERR_USAGE, "the engine is missing, ref or gpu: vernier capture ref '%s' ...",
		               argv[optind]);
	if (argc - optind < 2 && !o->model)
		return vn_fail(err, VN_ERR_USAGE, "an engine (ref or gpu) and a model are needed");
	if (argc - optind == 2 && !is_engine(argv[optind]) && is_engine(argv[optind + 1]))
		return vn_fail(err, VN_ERR_USAGE, "the engine comes before the model: vernier capture %s '%s'",
		               argv[optind + 1], argv[optind]);
	int64_t id;
	if (argc - optind > 2 && o->source.list && vn_text_whole(argv[optind + 2], 0, INT32_MAX, &id))
		return vn_fail(err, VN_ERR_USAGE, "unexpected '%s': the ids of a list are one argument: --ids 1,2,3",
		               argv[optind + 2]);
	if (argc - optind > 2)
		return vn_fail(err, VN_ERR_USAGE, "only one engine and one model can be given; unexpected '%s'%s",
		               argv[optind + 2], o->source.text ? "" : " (a prompt: --prompt TEXT, in quotes)");
	o->engine = argv[optind];
	o->model = o->model ? o->model : argv[optind + 1];
	o->run.gpu = strcmp(o->engine, "gpu") == 0;
	if (!is_engine(o->engine))
		return vn_fail(err, VN_ERR_USAGE, "the engine is ref or gpu, not '%s'%s", o->engine,
		               strncmp(o->engine, "re", 2) == 0 || strcmp(o->engine, "cpu") == 0 ? " (did you mean 'ref'?)"
		               : strncmp(o->engine, "gp", 2) == 0 || vn_text_is_word("vulkan|cuda", o->engine)
		                   ? " (did you mean 'gpu'?)"
		                   : ": another engine is recorded by its own program (vernier help usage.md)");
	if (!o->recipe.path)
		return vn_fail(err, VN_ERR_USAGE, "-o FILE is needed: the file to write the recording to");
	vn_status st = o->like || o->prompts ? VN_OK : vn_prompt_check(&o->source, err);
	if (st)
		return st;
	if (!o->recipe.precision)
		o->recipe.precision = o->run.gpu ? "f16" : "f32";
	if ((st = vn_policy_read("--precision", vn_policy_names, o->recipe.precision, &o->run.policy, err)))
		return st;
	const char *gpu_alone = o->run.n_force_ref   ? "--force-ref"
	                        : o->run.device >= 0 ? "--device"
	                        : o->kv >= 0         ? "--kv"
	                        : o->run.block       ? "--block-size"
	                        : o->run.validate    ? "--validate"
	                        : o->run.guard       ? "--guard"
	                                             : NULL;
	if (o->run.gpu && o->experts >= 0)
		return vn_fail(err, VN_ERR_USAGE, "--experts needs the ref engine");
	if (!o->run.gpu && gpu_alone)
		return vn_fail(err, VN_ERR_USAGE, "%s needs the gpu engine", gpu_alone);
	if (o->run.block && o->kv != VN_KV_PAGED)
		return vn_fail(err, VN_ERR_USAGE, "--block-size needs --kv paged");
	return VN_OK;
}

static void fill_defaults(options *o)
{
	o->run.paged = o->kv == VN_KV_PAGED;
	o->run.loaded = o->experts == EXPERTS_LOADED;
	o->recipe.threads = o->run.threads;
	o->recipe.validate = o->run.validate;
	o->recipe.guard = o->run.guard;
	o->recipe.seed = o->seed > 0 ? (uint64_t)o->seed : 0;
	if (o->recipe.decode < 0)
		o->recipe.decode = 0;
	if (!(o->recipe.temperature > 0))
		o->recipe.temperature = 0;
	o->recipe.pattern = o->pattern;
	o->run.force_ref = o->forced;
	o->run.precise = o->precise;
}

/* As vn_options_read. */
static int parse_arguments(options *o, int argc, char **argv)
{
	vn_error err;
	*o = (options) { .kv = -1,
		             .experts = -1,
		             .seed = -1,
		             .source.row = -1,
		             .run.device = -1,
		             .recipe = { .first_layer = -1, .last_layer = -1, .decode = -1, .temperature = -1 } };
	const int st = vn_options_read(&vn_capture_command, argc, argv, o);
	if (st)
		return st;
	if (argc - optind == 1 && is_engine(argv[optind]) && vn_option_settled_model(&o->model))
		return 2;
	if (read_values(o, &err) || check_options(o, argc, argv, &err))
		return vn_complain("capture", "%s", err.text);
	fill_defaults(o);
	return 0;
}

/* ---- the command ---------------------------------------------------------------- */

/* The command as a shell reads it; bare words if one of them cannot be quoted, or the line is
 * too long for that. */
static void join_words(int argc, char **argv, char *text, size_t room)
{
	snprintf(text, room, "vernier");
	for (int i = 0; i < argc; i++)
		vn_shell_add(text, room, argv[i]);
	if (*text)
		return;
	size_t at = (size_t)snprintf(text, room, "vernier");
	for (int i = 0; i < argc && at < room; i++)
		at += (size_t)snprintf(text + at, room - at, " %s", argv[i]);
}

/* VERNIER_FORCE_REF sets --force-ref for programs that run vernier.
 * The caller frees list and text. */
static void heed_environment(options *o, char **text, const char ***list)
{
	const char *said = getenv("VERNIER_FORCE_REF");
	int         n;

	if (!o->run.gpu || !said || !*said)
		return;
	*text = vn_alloc_text(said);
	*list = vn_toggles_split(*text, &n);
	*list = vn_alloc_resized(*list, (size_t)n + MOST_PATTERNS, sizeof **list);
	memcpy(*list + n, o->forced, (size_t)o->run.n_force_ref * sizeof **list);
	o->run.force_ref = *list;
	o->run.n_force_ref += n;
}

/* The tokens to run: those of the recording that is followed, or of the prompt. */
static vn_status read_tokens_of(options *o, const vn_session *session, vn_prompt *prompt, vn_follow *follow,
                                vn_error *err)
{
	const vn_follow_source from = { o->like, o->names, o->n_names, o->source.row };
	vn_status              st;

	if (!o->like)
		return vn_prompt_read(o->model, &o->source, prompt, err);
	if ((st = vn_follow_read(&from, vn_model_plan(session->m), follow, err)))
		return st;
	vn_prompt_of(o->model, follow->ids, follow->n, prompt);
	if (follow->unknown)
		vn_warn("capture", "--like: %d of the tensors of %s are no checkpoints of this model (first: %s)",
		        follow->unknown, o->like, follow->first);
	o->recipe.follow = follow;
	return VN_OK;
}

static vn_status capture_one(options *o, vn_error *err)
{
	VN_ENDS(vn_prompt_finish) vn_prompt  prompt = { 0 };
	VN_FREED int32_t                    *forced = NULL;
	VN_ENDS(vn_follow_finish) vn_follow  follow = { 0 };
	VN_ENDS(vn_session_close) vn_session session = { 0 };
	vn_recorded                          done;
	vn_status                            st;

	if ((st = vn_ids_kept("--ids-from", o->recipe.path, o->source.recording, err)) ||
	    (st = vn_ids_kept("--like", o->recipe.path, o->like, err)) ||
	    (st = vn_ids_kept("--against", o->recipe.path, o->recipe.against, err)) ||
	    (st = vn_ids_kept("--force-ids-from", o->recipe.path, o->forced_from, err)) ||
	    (o->forced_text &&
	     (st = vn_arguments_read_ids("--force-ids", o->forced_text, &forced, &o->recipe.decode, err))) ||
	    (o->forced_from && (st = vn_ids_from(&(vn_ids_source) { "--force-ids-from", o->forced_from, o->source.row },
	                                         VN_IDS_DECODED, &forced, &o->recipe.decode, err))) ||
	    (st = vn_session_open(&session, o->model, &o->run, o->inject, o->n_inject, err)) ||
	    (st = read_tokens_of(o, &session, &prompt, &follow, err)))
		return st;
	vn_prompt_warn("capture", session.m, &prompt);
	o->recipe.ids = prompt.ids;
	o->recipe.n_ids = prompt.n;
	o->recipe.tokenizer = prompt.tokenizer;
	o->recipe.forced = forced;
	if ((st = vn_recipe_check(&o->recipe, vn_model_plan(session.m), err)))
		return st;
	vn_interrupt_catch();
	if (!(st = vn_session_record(&session, &o->recipe, &done, err)))
		vn_prompts_say(o->recipe.path, &done);
	return st;
}

static vn_status capture_runs(options *o, vn_error *err)
{
	VN_FREED char        *text = NULL;
	VN_FREED const char **list = NULL;
	vn_status             st;

	heed_environment(o, &text, &list);
	if (!o->prompts) {
		st = capture_one(o, err);
	} else {
		const vn_prompts_job job = { o->prompts, o->recipe.path, o->model,   o->source.no_special, &o->run,
			                         o->inject,  o->n_inject,    &o->recipe, o->forced_from };
		st = vn_prompts_record(&job, err);
	}
	return st;
}

int cmd_capture(int argc, char **argv, const vn_run_judge *judge)
{
	options  o;
	vn_error err = { 0 };
	char     command[VN_FACT_VALUE];

	join_words(argc, argv, command, sizeof command); /* before getopt sorts it */
	const int said = parse_arguments(&o, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	o.recipe.command = command;
	o.recipe.judge = judge;
	return vn_command_end("capture", capture_runs(&o, &err), &err, o.strict, 0);
}
