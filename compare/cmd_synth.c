/* cmd_synth.c: vernier synth SHAPE -o DIR: a synthetic model of a real shape. */
#include "compare/commands.h"
#include "compare/options.h"

#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/model/synth.h"
#include "capture/base/warnings.h"

#include <stdio.h>

#define complain(...) vn_complain("synth", __VA_ARGS__)

typedef struct settings {
	const char *dir;
	int         layers, dtype;
	int64_t     seed;
	bool        force;
} settings;

static const vn_dtype dtypes[] = { VN_BF16, VN_F16, VN_F32 }; /* in the order of the words of --dtype */

static const vn_option options[] = {
	{ "output", 'o', VN_INTO(settings, dir), .argument = "DIR",
	  .help = "Write the model to this directory. Required." },
	{ "force", 0, VN_INTO(settings, force),
	  .help =
	      "Replace a DIR that holds such a model. A DIR that holds any other file is refused. The old model is removed "
	      "when the new one is complete." },
	{ "layers", 0, VN_INTO(settings, layers), VN_RANGE(1, VN_SYNTH_LAYERS), .argument = "N",
	  .help = "Number of layers, 1 to 1024. Default: that of the shape." },
	{ "dtype", 0, VN_CHOOSE(settings, dtype), .argument = "bf16|f16|f32",
	  .help = "Format of the weights. Default: bf16." },
	{ "seed", 0, VN_INTO(settings, seed), VN_RANGE(0, INT64_MAX), .argument = "N",
	  .help = "Seed of the weights. Default: 0." },
};
_Static_assert(VN_SYNTH_LAYERS == 1024, "as the help says");

const vn_command vn_synth_command = {
	.name = "synth",
	.synopsis = "SHAPE -o DIR [OPTION]...",
	.about = "Write a deterministic synthetic model of a real shape: DIR/config.json and DIR/model.safetensors. It has "
			 "no tokenizer: give vernier capture --ids, not --prompt.",
	VN_OPTION_TABLE(options),
	.examples = "vernier synth tiny -o tiny\n"
				"vernier synth qwen2-0.5b --layers 2 -o model",
	.status = "0 written, 2 trouble",
};

static void print_shapes(void)
{
	int at = vn_say(stdout, "Shapes:");
	for (int i = 0; vn_synth_shape(i); i++)
		at = vn_options_wrap(stdout, vn_synth_shape(i), at, 0);
	vn_say(stdout, "\n");
}

static int complain_shapes(void)
{
	char all[400] = "";

	for (int i = 0; vn_synth_shape(i); i++)
		vn_text_add(all, sizeof all, "%s%s", i ? ", " : "", vn_synth_shape(i));
	return complain("a SHAPE is needed: %s", all);
}

int cmd_synth(int argc, char **argv)
{
	settings  k = { 0 };
	vn_error  err = { "" };
	const int said = vn_options_read(&vn_synth_command, argc, argv, &k);

	if (said == 1)
		print_shapes();
	if (said)
		return said == 1 ? 0 : 2;
	if (argc - optind != 1)
		return argc > optind ? complain("one SHAPE, not several") : complain_shapes();
	if (!k.dir)
		return complain("-o DIR is missing");
	const vn_synth_options o = {
		.dtype = dtypes[k.dtype], .layers = k.layers, .seed = (uint64_t)k.seed, .force = k.force, .progress = true
	};
	return vn_command_end("synth", vn_synth_write(argv[optind], k.dir, &o, &err), &err, false, 0);
}
