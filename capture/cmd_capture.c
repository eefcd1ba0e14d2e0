/* cmd_capture.c: `vernier capture`: run a model and record its checkpoints. */
#include "capture/run/arguments.h"
#include "capture/commands.h"
#include "capture/base/option_table.h"
#include "capture/run/interrupt.h"
#include "capture/run/prompt.h"
#include "capture/run/run.h"
#include "capture/run/toggles.h"
#include "capture/base/warnings.h"
#include "libref/base/glob.h"
#include "libref/base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATTERNS = 256 };

typedef struct options {
	const char *engine, *model, *ids_text, *prompt_text, *forced_text;
	bool        no_special, strict;
	const char *pattern[MOST_PATTERNS], *precise[MOST_PATTERNS], *forced[MOST_PATTERNS];
	const char *inject[MOST_PATTERNS];
	int         n_inject;
	char        injected[VN_FACT_VALUE]; /* all of them */
	/* as given, for complaints */
	const char *device_text, *decode_text, *temperature_text, *seed_text, *kv_text, *block_text;
	vn_engine_options run;
	vn_recipe   recipe;
} options;

enum { IDS, PROMPT, NO_SPECIAL, POINTS, LAYERS, TOKENS, PRECISION, THREADS, DECODE, TEMPERATURE, SEED, FORCE_IDS, FORCE_REF, INJECT, DEVICE, KV, BLOCK_SIZE, VALIDATE,
       GUARD, STRICT, FORCE, OUTPUT, HELP, N_OPTIONS };

static const vn_option known[N_OPTIONS] = {
	[OUTPUT]      = { VN_ONCE, "o,output", "FILE",        "where the recording goes (-o for short); needed" },
	[IDS]         = { VN_ONCE, "ids", "LIST|@FILE",     "the tokens to run: 1,2,3 or a file or pipe of them; this or a prompt" },
	[PROMPT]      = { VN_ONCE, "prompt", "TEXT|@FILE",  "the text to run, through the model's tokenizer (or a file or pipe of it); this or ids" },
	[NO_SPECIAL]  = { VN_ONCE, "no-special-tokens", NULL, "with --prompt: put nothing around the text" },
	[POINTS]      = { VN_MANY, "points", "GLOB",        "record the checkpoints of these names; may be repeated" },
	[LAYERS]      = { VN_ONCE, "layers", "A-B",         "of those inside layers, only these layers" },
	[TOKENS]      = { VN_ONCE, "tokens", "last|A-B",    "only the rows of these tokens" },
	[PRECISION]   = { VN_MANY, "precision", "",         "to store and to add up in; f16 on the GPU and f32 on the CPU unless said;\n"
	                                           "                                     f32@GLOB: what makes these checkpoints does so in f32" },
	[THREADS]     = { VN_ONCE, "threads", "N",          "of the CPU, one a processor unless said; changes no bit" },
	[DECODE]      = { VN_ONCE, "decode", "N",           "then decode N tokens, each a step of its own" },
	[TEMPERATURE] = { VN_ONCE, "temperature", "T",      "with --decode: draw at this temperature; 0, the greedy choice, unless said" },
	[SEED]        = { VN_ONCE, "seed", "S",             "with --decode: of the draws" },
	[FORCE_IDS]   = { VN_ONCE, "force-ids", "LIST|@FILE", "decode these tokens, whatever the scores say" },
	[FORCE_REF]   = { VN_MANY, "force-ref", "GLOB",     "what makes these checkpoints runs on the reference, inside the GPU run; may be repeated" },
	[INJECT]      = { VN_MANY, "inject", "FAULT@GLOB",  "make this fault where these checkpoints are made; vernier points --faults; may be repeated" },
	[DEVICE]      = { VN_ONCE, "device", "N",           "of the GPU engine, as vernier devices counts; the best one unless said" },
	[KV]          = { VN_ONCE, "kv", "contiguous|paged", "how the GPU engine keeps keys and values" },
	[BLOCK_SIZE]  = { VN_ONCE, "block-size", "N",       "with --kv paged: tokens of a block, 16 unless said" },
	[VALIDATE]    = { VN_ONCE, "validate", NULL,        "with Vulkan's validation layers; a message fails the run" },
	[GUARD]       = { VN_ONCE, "guard", NULL,           "poison and guard every buffer of the GPU: names what is not or over-written" },
	[STRICT]      = { VN_ONCE, "strict", NULL,          VN_STRICT_HELP ", and the recording is there" },
	[FORCE]       = { VN_ONCE, "force", NULL,           "replace FILE if it exists" },
	[HELP]        = { VN_ONCE, "h,help", NULL,            "this" },
};

static void usage(FILE *to)
{
	vn_option table[N_OPTIONS];

	memcpy(table, known, sizeof table);
	table[PRECISION].value = vn_policy_names;
	fputs("usage: vernier capture ref|gpu MODEL -o FILE --prompt TEXT|--ids LIST [OPTION]...\n", to);
	vn_options_usage(table, N_OPTIONS, to);
}

static vn_status read_tokens(const char *text, vn_recipe *r, vn_error *err)
{
	if (strcmp(text, "last") == 0) {
		r->rows = VN_ROWS_LAST;
		return VN_OK;
	}
	r->rows = VN_ROWS_RANGE;
	if (vn_read_range("--tokens", text, &r->first, &r->last, NULL))
		return vn_fail(err, VN_ERR_USAGE, "--tokens wants last or a range like 0-3, not '%s'", text);
	return VN_OK;
}

static vn_status add_glob(const char **list, int *n, const char *option, const char *value, vn_error *err)
{
	if (*n == MOST_PATTERNS)
		return vn_fail(err, VN_ERR_USAGE, "%s can be given at most %d times", option, MOST_PATTERNS);
	list[(*n)++] = value;
	return VN_OK;
}

/* Of the run, once; of some nodes, P@GLOB, as often as need be. */
static vn_status read_precision(options *o, const char *value, vn_error *err)
{
	if (strchr(value, '@'))
		return add_glob(o->precise, &o->run.n_precise, "--precision", value, err);
	if (o->recipe.precision)
		return vn_fail(err, VN_ERR_USAGE, "--precision is given twice");
	o->recipe.precision = value;
	return VN_OK;
}

static vn_status read_option(void *context, int option, const char *value, vn_error *err)
{
	options   *o = context;
	vn_recipe *r = &o->recipe;
	int64_t    a = 0, b = 0;
	vn_status  st = VN_OK;

	switch (option) {
	case OUTPUT:    r->path = value; break;
	case IDS:       o->ids_text = value; break;
	case FORCE_IDS: o->forced_text = value; break;
	case PROMPT:    o->prompt_text = value; break;
	case NO_SPECIAL: o->no_special = true; break;
	case PRECISION: return read_precision(o, value, err);
	case FORCE_REF: return add_glob(o->forced, &o->run.n_force_ref, "--force-ref", value, err);
	case FORCE:     r->force = true; break;
	case STRICT:    o->strict = true; break;
	case VALIDATE:  o->run.validate = true; break;
	case GUARD:     o->run.guard = true; break;
	case TOKENS:    return read_tokens(value, r, err);
	case POINTS:
		st = add_glob(o->pattern, &r->n_patterns, "--points", value, err);
		return st ? st : vn_glob_check(value, err);
	case INJECT:
		return add_glob(o->inject, &o->n_inject, "--inject", value, err);
	case LAYERS:
		st = vn_read_range("--layers", value, &a, &b, err);
		r->first_layer = (int)a;
		r->last_layer = (int)b;
		return st;
	case THREADS:
		st = vn_read_whole("--threads", value, 1, 4096, &a, err);
		r->threads = o->run.threads = (int)a;
		return st;
	case DEVICE:
		o->device_text = value;
		st = vn_read_whole("--device", value, 0, 255, &a, err);
		o->run.device = (int)a;
		return st;
	case KV:
		o->kv_text = value;
		o->run.paged = strcmp(value, "paged") == 0;
		if (!o->run.paged && strcmp(value, "contiguous") != 0)
			return vn_fail(err, VN_ERR_USAGE, "--kv is contiguous or paged, not '%s'", value);
		return VN_OK;
	case BLOCK_SIZE:
		o->block_text = value;
		st = vn_read_whole("--block-size", value, 1, 65536, &a, err);
		o->run.block = (int)a;
		return st;
	case DECODE:
		o->decode_text = value;
		return vn_read_whole("--decode", value, 0, INT32_MAX, &r->decode, err);
	case TEMPERATURE:
		o->temperature_text = value;
		if (!vn_text_real(value, 0, 1000, &r->temperature))
			return vn_fail(err, VN_ERR_USAGE, "--temperature wants a number from 0 to 1000, not '%s'", value);
		return VN_OK;
	case SEED:
		o->seed_text = value;
		st = vn_read_whole("--seed", value, 0, INT64_MAX, &a, err);
		r->seed = (uint64_t)a;
		return st;
	default:
		break;
	}
	return VN_OK;
}

/* What the options say together. */
static vn_status check(options *o, int argc, char **argv, vn_error *err)
{
	if (argc - optind < 2)
		return vn_fail(err, VN_ERR_USAGE, "an engine (ref or gpu) and a model are needed");
	if (argc - optind > 2)
		return vn_fail(err, VN_ERR_USAGE, "one engine and one model, then what is '%s'?", argv[optind + 2]);
	o->engine = argv[optind];
	o->model = argv[optind + 1];
	o->run.gpu = strcmp(o->engine, "gpu") == 0;
	if (!o->run.gpu && strcmp(o->engine, "ref") != 0)
		return vn_fail(err, VN_ERR_USAGE, "the engine is ref or gpu, not '%s'", o->engine);
	if (!o->recipe.path)
		return vn_fail(err, VN_ERR_USAGE, "-o FILE is needed: where the recording goes");
	if (!o->ids_text && !o->prompt_text)
		return vn_fail(err, VN_ERR_USAGE, "--ids LIST or --prompt TEXT is needed (or @FILE): the tokens to run");
	if (o->ids_text && (o->prompt_text || o->no_special))
		return vn_fail(err, VN_ERR_USAGE, "--ids says which tokens to run, then what is %s?",
		               o->prompt_text ? "--prompt" : "--no-special-tokens");
	if (!o->decode_text && (o->temperature_text || o->seed_text))
		return vn_fail(err, VN_ERR_USAGE, "%s is for --decode N", o->temperature_text ? "--temperature" : "--seed");
	if (o->decode_text && o->forced_text)
		return vn_fail(err, VN_ERR_USAGE, "--force-ids says what is decoded, then what is --decode %s?", o->decode_text);
	if (!o->recipe.precision)
		o->recipe.precision = o->run.gpu ? "f16" : "f32";
	if (!vn_policy_from_name(o->recipe.precision, &o->run.policy))
		return vn_fail(err, VN_ERR_USAGE, "--precision is one of %s, not '%s'", vn_policy_names, o->recipe.precision);
	const char *gpu_alone = o->run.n_force_ref ? "--force-ref" : o->device_text ? "--device" : o->kv_text ? "--kv" : o->block_text ? "--block-size"
	                      : o->run.validate ? "--validate" : o->run.guard ? "--guard" : NULL;
	if (!o->run.gpu && gpu_alone)
		return vn_fail(err, VN_ERR_USAGE, "%s is for the gpu engine", gpu_alone);
	if (o->block_text && !o->run.paged)
		return vn_fail(err, VN_ERR_USAGE, "--block-size is for --kv paged");
	return VN_OK;
}

static vn_status read_options(options *o, int argc, char **argv, bool *help, vn_error *err)
{
	*o = (options){ .run.device = -1, .recipe = { .first_layer = -1, .last_layer = -1 } };
	vn_status st = vn_options_read(known, N_OPTIONS, argc, argv, read_option, o, help, err);
	if (!st && !*help)
		st = check(o, argc, argv, err);
	o->recipe.pattern = o->pattern;
	o->run.force_ref = o->forced;
	o->run.precise = o->precise;
	return st;
}

/* ---- the command ---------------------------------------------------------------- */

static void join(int argc, char **argv, char *text, size_t room)
{
	size_t at = (size_t)snprintf(text, room, "vernier");
	for (int i = 0; i < argc && at < room; i++)
		at += (size_t)snprintf(text + at, room - at, " %s", argv[i]);
}

/* VERNIER_FORCE_REF says the same as --force-ref, for whoever runs us; list and text are to be freed. */
static vn_status heed_environment(options *o, char **text, const char ***list, vn_error *err)
{
	const char *said = getenv("VERNIER_FORCE_REF");
	int         n;
	vn_status   st;

	if (!o->run.gpu || !said || !*said)
		return VN_OK;
	if (!(*text = strdup(said)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for VERNIER_FORCE_REF");
	if ((st = vn_toggles_split(*text, list, &n, err)))
		return st;
	const char **all = realloc(*list, ((size_t)n + MOST_PATTERNS) * sizeof *all);
	if (!all)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for VERNIER_FORCE_REF");
	*list = all;
	memcpy(all + n, o->forced, (size_t)o->run.n_force_ref * sizeof *all);
	o->run.force_ref = all;
	o->run.n_force_ref += n;
	return VN_OK;
}

/* A faulty copy of the model, for the engine alone: the recording is that of the model. And mistakes of the recording itself. */
static vn_status make_faulty(options *o, const vn_model *m, vn_faulty **f, vn_recorder_fault **r, vn_error *err)
{
	size_t    at = 0;
	vn_status st = VN_OK;

	for (int i = 0; !st && i < o->n_inject; i++) {
		if (vn_recorder_fault_find(o->inject[i]) >= 0)
			st = *r ? VN_OK : vn_recorder_fault_create(vn_model_plan(m), r, err);
		else
			st = *f ? VN_OK : vn_faulty_create(vn_model_plan(m), vn_model_weights(m), f, err);
		if (!st)
			st = vn_recorder_fault_find(o->inject[i]) >= 0 ? vn_recorder_fault_inject(*r, o->inject[i], err) : vn_faulty_inject(*f, o->inject[i], err);
		if (st)
			return vn_context(err, st, "--inject");
		at += (size_t)snprintf(o->injected + at, sizeof o->injected - at, "%s%s", i ? " " : "", o->inject[i]);
		if (at >= sizeof o->injected)
			return vn_fail(err, VN_ERR_USAGE, "--inject: all together they may be %zu letters long", sizeof o->injected - 1);
	}
	o->run.faulty = *f;
	o->recipe.recorder_fault = *r;
	o->recipe.inject = o->n_inject ? o->injected : NULL;
	return st;
}

static vn_status capture(options *o, vn_recorded *done, vn_error *err)
{
	vn_model   *m = NULL;
	vn_engine   e = { 0 };
	vn_faulty  *faulty = NULL;
	vn_recorder_fault *recorder_fault = NULL;
	vn_prompt   prompt = { 0 };
	int32_t    *forced = NULL;
	char       *text = NULL;
	const char **list = NULL, *warning;
	vn_status   st;

	if ((st = heed_environment(o, &text, &list, err)))
		goto done;
	if ((o->forced_text && (st = vn_read_ids("--force-ids", o->forced_text, &forced, &o->recipe.decode, err))) ||
	    (st = vn_model_open(o->model, &m, err)) ||
	    (st = vn_prompt_read(o->model, o->ids_text, o->prompt_text, !o->no_special, &prompt, err)))
		goto done;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		vn_warn("capture", "%s", warning);
	if (*prompt.warning)
		vn_warn("capture", "no text of the tokens: %s", prompt.warning);
	o->recipe.ids = prompt.ids;
	o->recipe.n_ids = prompt.n;
	o->recipe.tokenizer = prompt.tokenizer;
	o->recipe.forced = forced;
	if ((st = make_faulty(o, m, &faulty, &recorder_fault, err)) || (st = vn_recipe_check(&o->recipe, vn_model_plan(m), err)))
		goto done;
	vn_interrupt_catch();
	if (!(st = vn_engine_open(&e, m, &o->run, err)))
		st = vn_record(&o->recipe, m, &e, done, err);
done:
	vn_engine_close(&e);
	vn_faulty_destroy(faulty);
	vn_recorder_fault_destroy(recorder_fault);
	vn_model_close(m);
	free(list);
	free(text);
	free(forced);
	vn_prompt_finish(&prompt);
	return st;
}

int cmd_capture(int argc, char **argv)
{
	options     o;
	vn_recorded done;
	vn_error    err = { 0 };
	vn_status   st;
	bool        help;
	char        command[VN_FACT_VALUE];

	join(argc, argv, command, sizeof command); /* before getopt sorts it */
	st = read_options(&o, argc, argv, &help, &err);
	if (help) {
		usage(stdout);
		return 0;
	}
	if (st) {
		fprintf(stderr, "vernier capture: %s\n(vernier capture --help)\n", err.text);
		return 2;
	}
	o.recipe.command = command;
	if (capture(&o, &done, &err)) {
		fprintf(stderr, "vernier capture: %s\n", err.text);
		return 2;
	}
	if (done.unsound_weights)
		vn_warn("capture", "%s%s", done.unsound, done.unsound_weights > 1 ? "; other weights too (vernier show)" : "");
	fprintf(stderr, "%s: %" PRId64 " tensors, %.1f MB in %.2f s (%.2f s computing)\n", o.recipe.path, done.tensors,
	        (double)done.bytes / 1e6, done.seconds, done.computing);
	return vn_warnings_end("capture", o.strict, 0);
}
