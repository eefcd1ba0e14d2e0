/* cmd_import.c: `vernier import`: somebody else's dump as a checkpoint file. */
#include "capture/commands.h"
#include "capture/import/import.h"
#include "capture/base/option_table.h"
#include "capture/base/warnings.h"
#include "libref/base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUT, NAMES, DRY_RUN, MODEL, IDS, POSITIONS, ENGINE, PRECISION, UNMAPPED, BITS, PARTIAL, STRICT, FORCE, HELP, N_OPTIONS };

static const vn_option known[N_OPTIONS] = {
	[OUTPUT]    = { VN_ONCE, "o,output", "FILE",        "where the checkpoint file goes (-o for short); needed" },
	[NAMES]     = { VN_MANY, "names", "MAP",          "read its names by a name map: hf, vllm, llama.cpp or a file; may be repeated" },
	[DRY_RUN]   = { VN_ONCE, "dry-run", NULL,         "write nothing: say what becomes what, what is left over, and what is nearest to it" },
	[MODEL]     = { VN_ONCE, "model", "MODEL",        "the model that ran: its config, lengths of axes, table of weights" },
	[IDS]       = { VN_ONCE, "ids", "LIST|@FILE",     "the tokens that went in, where the dump does not say" },
	[POSITIONS] = { VN_ONCE, "positions", "LIST|@FILE", "their positions; from 0 on unless said" },
	[ENGINE]    = { VN_ONCE, "engine", "NAME",        "what made it" },
	[PRECISION] = { VN_ONCE, "precision", "WORD",     "what it computed in: f32, f16, bf16...; the widest of its tensors unless said" },
	[UNMAPPED]  = { VN_ONCE, "unmapped", "refuse|keep|drop", "what to do with names that are none of ours; refuse unless said" },
	[BITS]      = { VN_ONCE, "bits", "bf16|f8_e4m3|f8_e5m2", "what uint16 or uint8 numbers are, where no file says it" },
	[PARTIAL]   = { VN_ONCE, "partial", NULL,         "also from a dump that was cut off: what is whole; the file then says it is incomplete" },
	[STRICT]    = { VN_ONCE, "strict", NULL,          VN_STRICT_HELP ", and FILE is there" },
	[FORCE]     = { VN_ONCE, "force", NULL,           "replace FILE if it exists" },
	[HELP]      = { VN_ONCE, "h,help", NULL,            "this" },
};

static void usage(FILE *to)
{
	fputs("usage: vernier import DUMP -o FILE [OPTION]...\n"
	      "  DUMP is a directory of vernier_record.h, or of .npy files named as their tensors, a file .npz, .safetensors or .gguf,\n"
	      "  or the tree of transformers' model_debugging_utils, ..._FULL_TENSORS.json\n", to);
	vn_options_usage(known, N_OPTIONS, to);
}

typedef struct options {
	vn_import_options import;
	const char       *output;
	bool              force, strict;
} options;

static vn_status read_option(void *context, int option, const char *value, vn_error *err)
{
	options           *o = context;
	vn_import_options *i = &o->import;
	switch (option) {
	case OUTPUT:    o->output = value; break;
	case DRY_RUN:   i->dry = true; break;
	case MODEL:     i->model = value; break;
	case IDS:       i->ids = value; break;
	case POSITIONS: i->positions = value; break;
	case ENGINE:    i->engine = value; break;
	case PRECISION: i->precision = value; break;
	case BITS:      i->bits = value; break;
	case PARTIAL:   i->partial = true; break;
	case FORCE:     o->force = true; break;
	case STRICT:    o->strict = true; break;
	case NAMES:
		if (i->n_names == VN_IMPORT_MAPS)
			return vn_fail(err, VN_ERR_USAGE, "--names can be given at most %d times", VN_IMPORT_MAPS);
		i->names[i->n_names++] = value;
		break;
	case UNMAPPED:
		if (strcmp(value, "refuse") != 0 && strcmp(value, "keep") != 0 && strcmp(value, "drop") != 0)
			return vn_fail(err, VN_ERR_USAGE, "--unmapped is refuse, keep or drop, not '%s'", value);
		i->unmapped = *value == 'k' ? VN_UNMAPPED_KEPT : *value == 'd' ? VN_UNMAPPED_LEFT_OUT : VN_UNMAPPED_REFUSED;
		break;
	default:
		break;
	}
	return VN_OK;
}

static bool short_enough(const char *text)
{
	return !text || (*text && strlen(text) < VN_FACT_VALUE);
}

static vn_status check(options *o, int argc, char **argv, vn_error *err)
{
	if (argc - optind != 1)
		return vn_fail(err, VN_ERR_USAGE, argc > optind ? "one DUMP, then what is '%s'?" : "which DUMP?", argc > optind ? argv[optind + 1] : "");
	o->import.path = argv[optind];
	if (!o->output && !o->import.dry)
		return vn_fail(err, VN_ERR_USAGE, "-o FILE is needed: where the checkpoint file goes (or --dry-run)");
	if (!short_enough(o->import.engine) || !short_enough(o->import.precision))
		return vn_fail(err, VN_ERR_USAGE, "--engine and --precision are words of up to %d bytes", VN_FACT_VALUE - 1);
	return VN_OK;
}

static vn_status read_options(options *o, int argc, char **argv, bool *help, vn_error *err)
{
	*o = (options){ .output = NULL };
	const vn_status st = vn_options_read(known, N_OPTIONS, argc, argv, read_option, o, help, err);
	return st || *help ? st : check(o, argc, argv, err);
}

static void say(void *context, const char *words)
{
	(void)context;
	fprintf(stderr, "vernier import: %s\n", words);
}

/* Things worth a line that do not stop the work. */
static void warn(const vn_import *i)
{
	const bool one = i->n_misshapen == 1;
	if (!i->complete)
		vn_warn("import", "the dump is not complete%s%s", i->n_left ? ", and left out of it is what is not whole: " : "", i->left);
	if (i->n_alone)
		vn_warn("import", "left out: %d tensor%s from the last layer on with rows of some of the step's tokens alone (first: %s): ask the engine for the "
		        "logits of every token (in llama.cpp set batch.logits[i] of each), and they are whole", i->n_alone, i->n_alone == 1 ? "" : "s", i->alone);
	if (i->n_misshapen)
		vn_warn("import", "%d tensor%s not the axes of %s checkpoint%s, or not their lengths: %s%s", i->n_misshapen, one ? " has" : "s have",
		        one ? "its" : "their", one ? "" : "s", i->misshapen, i->plan ? "" : " (with --model lengths of axes are known)");
}

int cmd_import(int argc, char **argv)
{
	options   o;
	vn_import i;
	vn_error  err = { "" };
	vn_status st;
	bool      help;
	int64_t   tensors = 0, bytes = 0;

	st = read_options(&o, argc, argv, &help, &err);
	if (help) {
		usage(stdout);
		return 0;
	}
	if (st) {
		fprintf(stderr, "vernier import: %s\n(vernier import --help)\n", err.text);
		return 2;
	}
	if (!(st = vn_import_open(&o.import, say, NULL, &i, &err))) {
		warn(&i);
		if (o.import.dry)
			vn_import_list(&i, stdout);
		else
			st = vn_import_write(&i, o.output, o.force, &tensors, &bytes, &err);
	}
	if (st)
		fprintf(stderr, "vernier import: %s\n", err.text);
	else if (!o.import.dry)
		fprintf(stderr, "%s: %" PRId64 " tensors, %.1f MB%s\n", o.output, tensors, (double)bytes / 1e6, i.complete ? "" : ", incomplete");
	const int troubles = st ? 0 : i.n_troubles;
	vn_import_close(&i);
	return vn_warnings_end("import", o.strict, st || (o.import.dry && troubles) ? 2 : 0);
}
