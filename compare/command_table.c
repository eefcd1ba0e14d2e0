/* command_table.c: see command_table.h. */
#include "compare/command_table.h"

#include "libref/base/nearest.h"
#include "libref/base/say.h"

#include <string.h>
#include <unistd.h>

enum { OPTION = 24 }; /* bytes of an option of the program */

/* Fits a terminal of 24 lines of 80 columns; a narrower one wraps it. */
void vn_command_table_usage(const vn_command_table *t, FILE *to)
{
	static const struct {
		const char *text;
		int         indent;
	} end[] = {
		{ "  vernier capture ref MODEL --prompt TEXT -o ref.h5", 4 },
		{ "  vernier compare ref.h5 cand.h5 --model MODEL -o report.html", 4 },
		{ "vernier help COMMAND: options; usage.md: guide; compare.md: terms; --version.", 0 },
		{ "Exit status: 0 within limits or done, 1 outside limits, 2 trouble.", 0 },
	};

	vn_options_wrap(to, "vernier: where do two runs of one transformer model differ, and why?", 0, 0);
	fputs("\n\n", to);
	for (int i = 0; i < t->n; i++) {
		if (t->command[i].options->letter)
			continue;
		const int indent = vn_say(to, "  %-10s ", t->command[i].options->name);
		vn_options_wrap(to, t->command[i].help, indent, indent);
		fputc('\n', to);
	}
	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		fputs(i == 0 ? "\n" : "", to);
		const int at = vn_say(to, "%*s", (int)strspn(end[i].text, " "), "");
		vn_options_wrap(to, end[i].text + at, at, end[i].indent);
		fputc('\n', to);
	}
}

/* The names that other programs give to our commands. */
static const struct {
	const char *word, *is;
} elsewhere[] = {
	{ "diff", "compare" },
	{ "cmp", "compare" },
	{ "record", "capture" },
	{ "run", "capture" },
	{ "dump", "capture" },
	{ "convert", "import" },
	{ "info", "show" },
	{ "list", "points" },
	{ "bisect", "isolate" },
	{ "perplexity", "evaluate" },
	{ "ppl", "evaluate" },
	{ "ls", "show" },
	{ "inspect", "show" },
	{ "view", "show" },
	{ "config", "doctor" },
	{ "status", "doctor" },
	{ "env", "doctor" },
	{ "diagnose", "explain" },
	{ "check", "compare" },
	{ "validate", "compare" },
	{ "man", "help" },
	{ "completions", "help --completions" },
	{ "completion", "help --completions" },
};

/* "--version" for version. */
static const char *option_of(const vn_command_row *c, char option[OPTION])
{
	snprintf(option, OPTION, "--%s", c->options->name);
	return option;
}

static bool is_called(const vn_command_row *c, const char *name)
{
	const char letter[] = { '-', c->options->letter, '\0' };
	char       option[OPTION];

	if (strcmp(name, "-V") == 0)
		name = "-v";
	return strcmp(name, c->options->name) == 0 ||
	       (c->options->letter && (strcmp(name, letter) == 0 || strcmp(name, option_of(c, option)) == 0));
}

const vn_command_row *vn_command_table_find(const vn_command_table *t, const char *name)
{
	for (int i = 0; i < t->n; i++)
		if (is_called(&t->command[i], name))
			return &t->command[i];
	return NULL;
}

int vn_command_table_unknown(const vn_command_table *t, const char *name)
{
	vn_nearest near;
	char       option[OPTION];

	vn_nearest_start(&near, name);
	for (int i = 0; i < t->n; i++) {
		vn_nearest_try(&near, t->command[i].options->name);
		if (t->command[i].options->letter)
			vn_nearest_try(&near, option_of(&t->command[i], option));
	}
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strcmp(name, elsewhere[i].word) == 0)
			vn_nearest_settle(&near, elsewhere[i].is);
	const bool early = *name == '-' && !vn_nearest_found(&near);
	if (!early && !vn_nearest_found(&near) && access(name, F_OK) == 0) {
		vn_say(stderr,
		       "vernier: '%.200s' is a file or a folder, not a command: vernier compare REF CAND judges recordings; "
		       "vernier help lists the commands\n",
		       name);
		return 2;
	}
	vn_say(stderr, "vernier: no command '%.40s'%s; %s\n", name, vn_nearest_hint(&near),
	       early ? "options come after the command: vernier COMMAND [OPTION]..." : "vernier help lists the commands");
	return 2;
}
