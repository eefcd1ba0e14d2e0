/* options.c: see options.h. */
#include "compare/options.h"
#include "compare/comparison/checkpoint.h"
#include "compare/match/folders.h"

#include "libref/base/glob.h"
#include "libref/base/nearest.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int vn_option_policy(const char *command, const char *name, const char *names, const char *word, vn_policy *policy)
{
	char     option[40];
	vn_error err;

	snprintf(option, sizeof option, "--%s", name);
	return vn_policy_read(option, names, word, policy, &err) ? vn_complain(command, "%s", err.text) : 0;
}

int vn_option_model(const char *command, int argc, char *const *argv, const char **model)
{
	if (argc - optind < 1) {
		const int st = vn_option_settled_model(model);
		return st       ? st
		       : *model ? 0
		                : vn_complain(command,
		                              "a model is needed: vernier %s MODEL ... (or VERNIER_MODEL, or "
		                              "model: of vernier.yaml)",
		                              command);
	}
	if (vn_text_ends(argv[optind], ".h5"))
		return vn_complain(command, "%s is a recording: a model is needed, and --ids-from %s takes its tokens",
		                   argv[optind], argv[optind]);
	if (argc - optind > 1)
		return vn_complain(command, "only one model can be given; unexpected '%s'", argv[optind + 1]);
	*model = argv[optind];
	return 0;
}

void vn_options_notes(const char *const (*set)[2], int n, vn_lines *notes)
{
	for (int i = 0; i < n; i++) {
		const char *from = set[i][1] ? vn_option_origin(set[i][0][0] == '-' ? set[i][0] + 2 : "model") : NULL;
		if (from)
			vn_lines_add(notes, "%s %s: from %s", set[i][0], set[i][1], from);
	}
}

void vn_options_print_notes(const char *command, const vn_lines *notes)
{
	for (int i = 0; i < notes->n; i++)
		vn_say(stderr, "vernier %s: note: %s\n", command, notes->line[i]);
}

bool vn_is_model(const char *path)
{
	const size_t n = strlen(path);
	char         config[PATH_MAX];

	return (n > 5 && strcmp(path + n - 5, ".gguf") == 0) ||
	       (snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config && access(config, F_OK) == 0);
}

int vn_options_check_folders(const char *command, const char *ref, const char *cand, const char *hint)
{
	const char *folder = vn_match_is_folder(ref) ? ref : cand, *other = folder == ref ? cand : ref;

	if (vn_match_is_folder(ref) == vn_match_is_folder(cand))
		return 0;
	if (access(other, F_OK) != 0)
		return vn_complain(command, "%s: %s", other, strerror(errno));
	return vn_complain(command,
	                   "%s is a folder and %s a file: give two folders, or two files (vernier capture records a model, "
	                   "vernier import converts a dump)%s",
	                   folder, other, hint);
}

void vn_options_say_source(const vn_prompt_source *from, char line[VN_SHELL_LINE])
{
	const struct {
		const char *option, *value;
	} said[] = { { "--ids", from->list }, { "--ids-from", from->recording }, { "--prompt", from->text } };

	vn_shell_begin(line);
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		if (said[i].value)
			vn_shell_option(line, said[i].option, said[i].value);
	if (from->row >= 0) {
		char row[24];
		snprintf(row, sizeof row, "%" PRId64, from->row);
		vn_shell_option(line, "--batch-row", row);
	}
	if (from->no_special)
		vn_shell_add(line, VN_SHELL_LINE, "--no-special-tokens");
	vn_shell_end(line);
}

vn_status vn_take_allow(void *to, const vn_option *o, const char *words, vn_error *err)
{
	const char *bad = vn_allow_parse(words, (unsigned *)(void *)((char *)to + o->at));
	char        word[VN_NEAREST_MAX];
	char        all[200];
	vn_nearest  near;

	if (!bad)
		return VN_OK;
	snprintf(word, sizeof word, "%.*s", (int)strcspn(bad, ","), bad);
	vn_nearest_start(&near, word);
	vn_nearest_try_words(&near, vn_allow_names);
	return vn_fail(err, VN_ERR_USAGE, "--allow takes %s, not '%s'%s", vn_text_words(vn_allow_names, all, sizeof all),
	               word, vn_nearest_hint(&near));
}

static int check_points(const char *command, vn_comparing *k)
{
	vn_error err;
	for (int i = 0; i < k->o.n_points; i++)
		if (vn_glob_check(k->point[i], &err))
			return vn_complain(command, "--points: %s", err.text);
	k->o.points = k->o.n_points ? k->point : NULL;
	return 0;
}

int vn_options_check_comparing(const char *command, vn_comparing *k, bool has_floor)
{
	vn_error err;

	if (check_points(command, k))
		return 2;
	if (k->precision && vn_policy_read("--floor-precision", vn_policy_names, k->precision, &k->policy, &err))
		return vn_complain(command, "%s", err.text);
	k->o.floor_policy = k->precision ? &k->policy : NULL;
	if (k->said && vn_policy_read("--precision", vn_policy_names, k->said, &k->said_policy, &err))
		return vn_complain(command, "%s", err.text);
	k->o.precision = k->said ? &k->said_policy : NULL;
	if (has_floor && k->o.model)
		return vn_complain(command, "--floor and --model both give a floor; use one of them");
	if (k->o.floor_policy && !has_floor && !k->o.model)
		return vn_complain(command, "--floor-precision needs --model or --floor");
	return 0;
}
