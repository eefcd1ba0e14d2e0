/* cmd_synth.c: vernier synth SHAPE -o DIR: a synthetic model of a real shape. */
#include "compare/commands.h"
#include "compare/options.h"

#include "libref/base/text.h"
#include "libref/model/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(FILE *to)
{
	fputs("usage: vernier synth SHAPE -o DIR [--layers N] [--dtype bf16|f16|f32] [--seed N] [--force]\n"
	      "  writes a synthetic model of a real shape, config.json and model.safetensors\n"
	      "  --layers N      so many layers, instead of as many as the shape has\n"
	      "  --dtype TYPE    of the weights; bf16 unless said\n"
	      "  --seed N        other weights; 0 unless said\n"
	      "  --force         replace a DIR that holds such a model and no other file\n"
	      "exit status: 0 written, 2 trouble\n"
	      "shapes:", to);
	for (int i = 0; vn_synth_shape(i); i++)
		fprintf(to, " %s", vn_synth_shape(i));
	fputc('\n', to);
}

#define complain(...) vn_complain("synth", __VA_ARGS__)

int cmd_synth(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' }, { "layers", required_argument, NULL, 'l' },
		{ "dtype", required_argument, NULL, 'd' }, { "seed", required_argument, NULL, 's' },
		{ "force", no_argument, NULL, 'f' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	vn_synth_options o = { .dtype = VN_BF16, .progress = true };
	const char      *dir = NULL;
	vn_error         err = { "" };
	int64_t          n;
	int              c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1)
		switch (c) {
		case 'o':
			dir = optarg;
			break;
		case 'l':
			if (!vn_text_whole(optarg, 1, VN_SYNTH_LAYERS, &n))
				return complain("--layers takes a number from 1 to %d, not '%s'", VN_SYNTH_LAYERS, optarg);
			o.layers = (int)n;
			break;
		case 's':
			if (!vn_text_whole(optarg, 0, INT64_MAX, &n))
				return complain("--seed takes a number >= 0, not '%s'", optarg);
			o.seed = (uint64_t)n;
			break;
		case 'd':
			if (!vn_dtype_from_name(optarg, &o.dtype) || o.dtype == VN_F64 || o.dtype >= VN_N_ENGINE_DTYPES)
				return complain("--dtype takes bf16, f16 or f32, not '%s'", optarg);
			break;
		case 'f':
			o.force = true;
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			return vn_option_wrong("synth", c, argv);
		}
	if (argc - optind != 1)
		return complain(argc > optind ? "one SHAPE, not several" : "which SHAPE?");
	if (!dir)
		return complain("-o DIR is missing");
	if (vn_synth_write(argv[optind], dir, &o, &err)) {
		fprintf(stderr, "vernier synth: %s\n", err.text);
		return 2;
	}
	return 0;
}
