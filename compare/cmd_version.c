/* cmd_version.c: `vernier version`: the version, and what protects this machine from a hostile
 * file. */
#include "compare/commands.h"

#include "capture/base/option_rows.h"
#include "capture/file/child.h"
#include "libref/base/say.h"

#include <getopt.h>

typedef struct settings {
	bool verbose;
} settings;

static const vn_option options[] = {
	{ "verbose", 0, VN_INTO(settings, verbose),
	  .help = "Also print which layers of the sandbox for recordings and .npz files this machine has." },
};

const vn_command vn_version_command = {
	.name = "version",
	.synopsis = "[--verbose]",
	.about = "Print the version.\n"
			 "vernier --version and vernier -v are the same command.\n",
	VN_OPTION_TABLE(options),
	.letter = 'v',
	.examples = "vernier version\n"
				"vernier version --verbose",
	.status = "0 printed, 2 trouble, or (with --verbose) no sandbox",
};

/* Prints what protects this machine from a hostile file. */
static int print_sandbox(void)
{
	char       missing[64];
	vn_error   err;
	const bool tried = vn_child_sandbox_gaps(missing, sizeof missing, &err) == VN_OK;

	vn_say(stdout, "sandbox for recordings and .npz: %s%s\n",
	       !tried     ? "none: "
	       : *missing ? "in part; this machine or build has no "
	                  : "whole (Landlock, seccomp)",
	       tried ? missing : err.text);
	if (!tried)
		vn_say(stderr, "vernier: %s\n", err.text);
	return tried ? 0 : 2;
}

int cmd_version(int argc, char **argv)
{
	settings  k = { false };
	const int said = vn_options_read(&vn_version_command, argc, argv, &k);
	if (said)
		return said == 1 ? 0 : 2;
	if (optind < argc)
		return vn_complain("version", "'%s': this command takes no arguments", argv[optind]);
	vn_say(stdout, "vernier " VERNIER_VERSION "\n");
	return k.verbose ? print_sandbox() : 0;
}
