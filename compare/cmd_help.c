/* cmd_help.c: `vernier help`: the usage, the options of a command, a page of the documentation; and
 * what is printed for an installation. */
#include "compare/commands.h"
#include "compare/help_words.h"

#include "capture/base/option_rows.h"
#include "capture/base/shipped.h"
#include "capture/file/output.h"
#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/model/synth.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
	const char *man, *man_pages, *topic;
	int         shell; /* N_SHELLS: none */
	bool        prefix;
} settings;

enum { FISH = 2, N_SHELLS };
static const char *const shell_names = "bash|zsh|fish"; /* FISH: the last */

static const vn_option options[] = {
	{ "man", 0, VN_INTO(settings, man), .argument = "COMMAND",
	  .help = "Print the command's section of the manual page vernier.1, for roff." },
	{ "man-pages", 0, VN_INTO(settings, man_pages), .argument = "DIR",
	  .help = "Write a manual page for each command, DIR/vernier-COMMAND.1." },
	{ "prefix", 0, VN_INTO(settings, prefix),
	  .help = "Print the folder of the installation, which holds share/vernier and include." },
	{ "completions", 0, VN_CHOOSE(settings, shell), .argument = "SHELL", .words = &shell_names,
	  .help = "Print a script for a shell, which then completes commands, options and values of vernier." },
};

const vn_command vn_help_command = {
	.name = "help",
	.synopsis = "[COMMAND|PAGE|WORD]\n--man COMMAND\n--man-pages DIR\n--prefix\n--completions SHELL",
	.about = "List the commands, print the options of COMMAND, or print a page of the documentation. usage.md is the "
			 "first PAGE, and has links to all others. Of a WORD (an id such as R2.1e4, or a term such as floor) print "
			 "what they say.\n"
			 "vernier --help and vernier -h are the same command.\n",
	VN_OPTION_TABLE(options),
	.letter = 'h',
	.examples = "vernier help compare\n"
				"vernier help R2.1e4",
	.status = "0 printed, 2 no such command or page, or trouble",
};

/* ---- the manual ------------------------------------------------------------------------------ */

/* Whether an earlier command has the same table of options, as compare has that of explain. */
static bool has_options_of_another(const vn_command_table *t, int i)
{
	for (int k = 0; k < i; k++)
		if (t->command[i].options->n > 0 && t->command[k].options->option == t->command[i].options->option)
			return true;
	return false;
}

/* Prints the command's section of vernier.1. */
static int print_manual(const vn_command_table *t, const char *name)
{
	for (int i = 0; i < t->n; i++)
		if (strcmp(name, t->command[i].options->name) == 0) {
			vn_options_section(t->command[i].options, "vernier", !has_options_of_another(t, i), stdout);
			return 0;
		}
	return vn_complain("help", "--man: no command '%.40s'", name);
}

/* Writes a manual page for each command to FOLDER/vernier-COMMAND.1. Older ones of ours are
 * replaced. */
static int write_manual_pages(const vn_command_table *t, const char *folder)
{
	for (int i = 0; i < t->n; i++) {
		char      path[PATH_MAX];
		vn_output out;
		vn_error  err;

		if (snprintf(path, sizeof path, "%s/vernier-%s.1", folder, t->command[i].options->name) >= (int)sizeof path)
			return vn_complain("help", "--man-pages: %.80s...: the path is too long", folder);
		if (vn_output_open(&out, path, VN_PLACE_MANUAL, true, &err))
			return vn_complain("help", "--man-pages: %s", err.text);
		vn_options_page(t->command[i].options, "vernier", t->command[i].help, out.file);
		if (vn_output_close(&out, VN_OK, &err))
			return vn_complain("help", "--man-pages: %s", err.text);
	}
	return 0;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Prints the prefix that holds share/vernier and include. */
static int print_prefix(void)
{
	static const char below[] = "/share/vernier/limits/fp32.yaml";
	char              path[PATH_MAX];
	vn_error          err;

	if (vn_shipped_find("limits", "fp32.yaml", path, &err))
		return vn_complain("help", "--prefix: %s", err.text);
	const size_t n = strlen(path), tail = sizeof below - 1;
	if (n < tail || strcmp(path + n - tail, below) != 0)
		return vn_complain("help", "--prefix: this program is not installed: its limits are %s", path);
	vn_say(stdout, "%.*s\n", (int)(n - tail), path);
	return 0;
}

static bool is_page(const char *name)
{
	const size_t n = strlen(name);
	return n > 3 && strcmp(name + n - 3, ".md") == 0 && *name != '/' && !strstr(name, "..");
}

/* "usage" for "usage.md", "guides/c" for "guides/c.md". */
static bool is_bare_page(const char *name, char page[NAME_MAX + 1])
{
	char     path[PATH_MAX];
	vn_error err;

	return snprintf(page, NAME_MAX + 1, "%s.md", name) <= NAME_MAX && is_page(page) &&
	       !vn_shipped_find(".", page, path, &err);
}

static int print_file(const char *path)
{
	char   block[8192];
	size_t n;
	FILE  *from = fopen(path, "r");

	if (!from)
		return vn_complain("help", "%s: %s", path, strerror(errno));
	while ((n = fread(block, 1, sizeof block, from)) > 0)
		fwrite(block, 1, n, stdout);
	const bool whole = !ferror(from);
	fclose(from);
	return whole ? 0 : vn_complain("help", "%s: cannot be read", path);
}

/* Prints a page of the documentation. */
static int print_page(const char *name)
{
	char     path[PATH_MAX];
	vn_error err;

	if (vn_shipped_find(".", name, path, &err)) {
		vn_say(stderr, "vernier help: no page '%.60s'; vernier help usage.md has links to all pages\n", name);
		return 2;
	}
	vn_printed_page();
	return print_file(path);
}

/* Prints what is known of a command or a page; a command comes first. */
static int print_topic(const vn_command_table *t, const char *topic)
{
	const vn_command_row *c = vn_command_table_find(t, topic);
	char                  page[NAME_MAX + 1];

	if (c) {
		vn_options_help(c->options, stdout);
		return 0;
	}
	if (strncmp(topic, "specs/", 6) == 0)
		topic += 6;
	return is_page(topic)              ? print_page(topic)
	       : is_bare_page(topic, page) ? print_page(page)
	       : vn_help_word(topic)       ? 0
	                                   : vn_command_table_unknown(t, topic);
}

/* ---- completions ----------------------------------------------------------------------------- */

/* What completions offer, as "a|b|c". */
typedef struct offered {
	char limits[1000], maps[400], shapes[400];
	char commands[400];
	char topics[2400]; /* commands and pages */
} offered;

/* Adds the pages of a folder of the documentation as `help` takes them: "usage.md|guides/c.md". */
static vn_status add_pages(const char *folder, const char *before, char *text, size_t room, vn_error *err)
{
	char            names[1000];
	const vn_status st = vn_shipped_names(folder, ".md", names, sizeof names, err);

	for (const char *name = names; !st && *name; name += strcspn(name, "|"), name += *name == '|')
		vn_text_add(text, room, "%s%s%.*s.md", *text ? "|" : "", before, (int)strcspn(name, "|"), name);
	return st;
}

static vn_status list_offered(const vn_command_table *t, offered *o, vn_error *err)
{
	vn_status st;

	*o = (offered) { .limits = "" };
	for (int i = 0; i < t->n; i++)
		vn_text_add(o->commands, sizeof o->commands, "%s%s", i ? "|" : "", t->command[i].options->name);
	for (int i = 0; vn_synth_shape(i); i++)
		vn_text_add(o->shapes, sizeof o->shapes, "%s%s", i ? "|" : "", vn_synth_shape(i));
	vn_text_add(o->topics, sizeof o->topics, "%s", o->commands);
	if ((st = vn_shipped_names("limits", "", o->limits, sizeof o->limits, err)) ||
	    (st = vn_shipped_names("names", ".yaml", o->maps, sizeof o->maps, err)) ||
	    (st = add_pages(".", "", o->topics, sizeof o->topics, err)))
		return st;
	return add_pages("guides", "guides/", o->topics, sizeof o->topics, err);
}

/* The possible values of a command's first argument; NULL: file names. */
static const char *first_values(const vn_command_table *t, const char *name, const offered *o)
{
	return strcmp(name, "capture") == 0  ? t->engines
	       : strcmp(name, "synth") == 0  ? o->shapes
	       : strcmp(name, "limits") == 0 ? o->limits
	       : strcmp(name, "help") == 0   ? o->topics
	                                     : NULL;
}

/* Prints two variables in the shell's syntax, the words and the program that chooses among them,
 * and the shell's script, which reads them. */
static int print_completions(const vn_command_table *t, int shell)
{
	enum { MOST = 32 };
	static const char *const script[N_SHELLS] = { "vernier.bash", "vernier.zsh", "vernier.fish" };
	const char *const set = shell == FISH ? "set -g " : "", *const to = shell == FISH ? " " : "=";
	char         offer_path[PATH_MAX], script_path[PATH_MAX];
	vn_completed of[MOST];
	offered      o;
	vn_error     err;

	assert(t->n <= MOST);
	if (list_offered(t, &o, &err) || vn_shipped_find("shells", "offer.awk", offer_path, &err) ||
	    vn_shipped_find("shells", script[shell], script_path, &err))
		return vn_complain("help", "--completions: %s", err.text);
	for (int i = 0; i < t->n; i++)
		of[i] = (vn_completed) { .name = t->command[i].options->name,
			                     .help = t->command[i].help,
			                     .options = t->command[i].options,
			                     .first = first_values(t, t->command[i].options->name, &o),
			                     .files = strcmp(t->command[i].options->name, "limits") == 0,
			                     .last = t->command[i].work == VN_WORK_PRINT };
	const vn_offer offer[] = {
		{ "limits", o.limits }, { "names", o.maps }, { "ref-names", o.maps }, { "man", o.commands }
	};
	printf("#compdef vernier\n%s_vernier_rows%s'", set, to);
	vn_options_completions(&(vn_completions) { of, offer, t->n, sizeof offer / sizeof *offer }, stdout);
	printf("'\n%s_vernier_offer%s'", set, to);
	if (print_file(offer_path))
		return 2;
	printf("'\n");
	return print_file(script_path);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	const int said = vn_options_read(&vn_help_command, argc, argv, k);
	if (said)
		return said;
	const int n = (k->man != NULL) + (k->man_pages != NULL) + k->prefix + (k->shell < N_SHELLS);
	if (n > 1)
		return vn_complain("help", "give only one of --man, --man-pages, --prefix and --completions");
	if (optind + (n == 0) < argc)
		return vn_complain("help",
		                   n ? "'%s': no COMMAND or PAGE is allowed with an option"
		                     : "'%s': only one COMMAND or PAGE is allowed",
		                   argv[optind + (n == 0)]);
	k->topic = optind < argc ? argv[optind] : NULL;
	return 0;
}

int cmd_help(int argc, char **argv, const vn_command_table *t)
{
	settings  k = { .shell = N_SHELLS };
	const int said = parse_arguments(&k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;
	if (k.man)
		return print_manual(t, k.man);
	if (k.man_pages)
		return write_manual_pages(t, k.man_pages);
	if (k.prefix)
		return print_prefix();
	if (k.shell < N_SHELLS)
		return print_completions(t, k.shell);
	if (k.topic)
		return print_topic(t, k.topic);
	vn_command_table_usage(t, stdout);
	return 0;
}
