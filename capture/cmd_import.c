/* cmd_import.c: `vernier import`: converts another engine's dump to a checkpoint file. */
#include "capture/base/option_rows.h"
#include "capture/commands.h"
#include "capture/import/import.h"
#include "capture/base/warnings.h"
#include "capture/file/output.h"
#include "capture/run/ids_from.h"
#include "libref/base/options.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/plan/policy.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
	vn_import_options import;
	const char       *output, *map;
	int               unmapped;
	bool              force, strict;
} options;

static const vn_option known[] = {
	VN_GROUP("Files"),
	{ "output", 'o', VN_INTO(options, output), .argument = "FILE",
	  .help = "Write the recording to FILE. Required, except with --dry-run. The file gets this name only when it is "
	          "complete." },
	VN_RECORDING_FORCE(options, force),
	{ "dry-run", 0, VN_INTO(options, import.dry),
	  .help = "Write nothing. List what each tensor becomes. For tensors that become nothing, list the nearest "
	          "checkpoint name." },
	{ "partial", 0, VN_INTO(options, import.partial),
	  .help = "Import those tensors of an interrupted dump that are complete. The recording is marked incomplete." },
	VN_GROUP("Names"),
	VN_NAMES_OPTION(options, import.names, import.n_names, "DUMP's", .set_without = "like"),
	{ "unmapped", 0, VN_CHOOSE(options, unmapped), .argument = "refuse|keep|drop",
	  .help = "What to do with tensors whose names are not checkpoint names. Default: refuse the import." },
	{ "like", 0, VN_INTO(options, import.like), .argument = "REC",
	  .help = "Propose names by the numbers: REC is a recording of the same model on the same tokens, which it also "
	          "gives. Prints the proposed rules with their evidence, and what contradicts it. Tensors without a "
	          "counterpart are dropped unless --unmapped keep is given." },
	{ "write-map", 0, VN_INTO(options, map), .argument = "MAP", .needs = "like",
	  .help = "With --like: write the proposed rules to MAP, for --names." },
	VN_GROUP("Facts that the dump lacks"),
	{ "model", 0, VN_INTO(options, import.model), .argument = "MODEL", .set_without = "",
	  .help =
	      "The model that ran. It adds config and table of weights to the recording and gives the lengths of axes." },
	{ "mtp", 0, VN_INTO(options, import.mtp), .needs = "model",
	  .help = "The run computed the model's multi-token-prediction head, too (vernier help models.md)." },
	{ "ids", 0, VN_INTO(options, import.ids), .argument = "LIST|@FILE", .not_with = "ids-from",
	  .because = "gives the tokens",
	  .help =
	      "The tokens of all steps, if the dump does not have them. Of a batch: [[1,2],[-1,3]], a row for each prompt, "
	      "-1 for padding." },
	{ "ids-from", 0, VN_INTO(options, import.ids_from), .argument = "REC",
	  .help = "Take the tokens of the recording REC, including those that it decoded." },
	{ "positions", 0, VN_INTO(options, import.positions), .argument = "LIST|@FILE",
	  .help = "The positions of the tokens, -1 for padding. Default: counted from 0." },
	{ "engine", 0, VN_INTO(options, import.engine), .argument = "NAME",
	  .help = "The engine that wrote the dump. Default: the engine that the dump names." },
	{ "precision", 0, VN_INTO(options, import.precision), .argument = "P", .words = &vn_policy_names,
	  .help = "The format that the engine computed in. Default: the format that the dump names; if none, the narrowest "
	          "that the outputs of its products and norms fit." },
	{ "bits", 0, VN_INTO(options, import.bits), .argument = "bf16|f8_e4m3|f8_e5m2",
	  .help = "The format of uint16 or uint8 numbers, if no manifest states it." },
	VN_GROUP("Verdict"),
	VN_STRICT_OPTION(options, strict, ". FILE is written all the same"),
	VN_NO_CONFIG_OPTION,
};

const vn_command vn_import_command = {
	.name = "import",
	.synopsis = "DUMP -o FILE [OPTION]...",
	.about = "Turn the tensors that another engine wrote into a recording.\n"
			 "DUMP is a directory that vernier_record.h wrote, a directory of .npy or .txt files named after their "
			 "tensors, a .npz, .safetensors or .gguf file, or the tree of transformers' model_debugging_utils "
			 "(..._FULL_TENSORS.json).",
	VN_OPTION_TABLE(known),
	.examples = "vernier import dump.npz --model MODEL --ids 1,2,3 -o cand.h5\n"
				"vernier import DUMP --like ref.h5 -o cand.h5",
	.status = "0 written, 1 written with a warning (--strict), 2 trouble",
};

static bool short_enough(const char *text)
{
	return !text || (*text && strlen(text) < VN_FACT_VALUE);
}

static vn_status check_options(options *o, int argc, char **argv, vn_error *err)
{
	if (argc - optind != 1)
		return vn_fail(err, VN_ERR_USAGE,
		               argc > optind ? "only one DUMP can be given; unexpected '%s'" : "a DUMP is needed",
		               argc > optind ? argv[optind + 1] : "");
	o->import.path = argv[optind];
	if (!o->output && !o->import.dry)
		return vn_fail(err, VN_ERR_USAGE, "-o FILE is needed: the file to write the recording to (or --dry-run)");
	if (vn_ids_kept("--ids-from", o->output, o->import.ids_from, err) ||
	    vn_ids_kept("--like", o->output, o->import.like, err))
		return VN_ERR_USAGE;
	if (o->import.like && o->import.unmapped == VN_UNMAPPED_REFUSED)
		o->import.unmapped = VN_UNMAPPED_LEFT_OUT;
	if (!short_enough(o->import.engine))
		return vn_fail(err, VN_ERR_USAGE, "--engine is a word of up to %d bytes", VN_FACT_VALUE - 1);
	vn_policy policy;
	return o->import.precision && !vn_policy_from_word(o->import.precision, &policy)
	           ? vn_policy_read("--precision", vn_policy_names, o->import.precision, &policy, err)
	           : VN_OK;
}

static void print_note(void *context, const char *words)
{
	(void)context;
	vn_say(stderr, "vernier import: %s\n", words);
}

/* As vn_options_read. */
static int parse_arguments(options *o, int argc, char **argv)
{
	vn_error err;
	*o = (options) { .import.say = print_note };
	const int st = vn_options_read(&vn_import_command, argc, argv, o);
	o->import.unmapped = (vn_unmapped)o->unmapped; /* the words of --unmapped are in the order of the enum */
	if (st)
		return st;
	return check_options(o, argc, argv, &err) ? vn_complain("import", "%s", err.text) : 0;
}

/* Prints warnings and notes that do not stop the import. */
static void warn_of_import(const vn_import *i)
{
	const bool one = i->n_misshapen == 1;
	if (!i->dump->complete && i->dump->n_left)
		vn_warn("import", "the dump is not complete; tensors that are not whole are left out: %d, the first: %s",
		        i->dump->n_left, i->dump->left);
	else if (!i->dump->complete)
		vn_warn("import", "the dump is not complete");
	if (i->proposal.n_reports)
		vn_warn("import", "%d contradiction%s of the proposed map, the first: %s", i->proposal.n_reports,
		        i->proposal.n_reports == 1 ? "" : "s", i->proposal.report[0]);
	if (!i->dump->n_ids) /* a dry run: else it is an error */
		vn_warn("import", "%s does not record the tokens: an import needs --ids LIST or --ids-from REC", i->dump->path);
	if (i->n_alone)
		vn_warn(
			"import",
			"left out: %d tensor%s from the last layer on, with rows of only some of the step's tokens (first: %s): to "
			"record them "
			"whole, ask the engine for the logits of every token (in llama.cpp, set batch.logits[i] of each)",
			i->n_alone, i->n_alone == 1 ? "" : "s", i->alone);
	if (*i->precision)
		print_note(NULL, i->precision);
	if (*i->claim)
		vn_warn("import", "%s", i->claim);
	if (i->n_misshapen)
		vn_warn("import", "%d tensor%s axes or lengths unlike the checkpoint's: %s%s", i->n_misshapen,
		        one ? " has" : "s have", i->misshapen, i->plan ? "" : " (--model gives the lengths of axes)");
}

static vn_status write_map(const options *o, const vn_import *i, vn_error *err)
{
	vn_output out;
	vn_status st = vn_output_open(&out, o->map, VN_PLACE_MAP, o->force, err);
	if (st)
		return st;
	vn_proposal_write(&i->proposal, o->import.like, out.file);
	return vn_output_close(&out, VN_OK, err);
}

int cmd_import(int argc, char **argv)
{
	options   o;
	vn_import i;
	vn_error  err = { "" };
	vn_status st;
	int64_t   tensors = 0, bytes = 0;
	char      size[24];

	const int said = parse_arguments(&o, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	if (!(st = vn_import_open(&o.import, &i, &err))) {
		if (o.import.like)
			vn_proposal_print(&i.proposal, stdout);
		warn_of_import(&i);
		if (o.map)
			st = write_map(&o, &i, &err);
	}
	if (!st) {
		if (o.import.dry)
			vn_import_list(&i, stdout);
		else
			st = vn_import_write(&i, o.output, o.force, &tensors, &bytes, &err);
	}
	if (!st && !o.import.dry)
		vn_say(stderr, "%s: %" PRId64 " tensor%s, %s%s\n", o.output, tensors, tensors == 1 ? "" : "s",
		       vn_text_bytes(bytes, size), i.dump->complete ? "" : ", incomplete");
	const int troubles = st ? 0 : i.n_troubles;
	vn_import_close(&i);
	return vn_command_end("import", st, &err, o.strict, o.import.dry && troubles ? 2 : 0);
}
