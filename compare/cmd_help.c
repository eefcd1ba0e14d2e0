/* cmd_help.c: `vernier help`: the usage, the options of a command, a page of the documentation; and
 * what is printed for an installation. */
#include "compare/commands.h"
#include "compare/metrics/metrics.h"

#include "capture/base/option_rows.h"
#include "capture/base/shipped.h"
#include "capture/file/output.h"
#include "libref/base/alloc.h"
#include "libref/base/freed.h"
#include "libref/base/map.h"
#include "libref/base/nearest.h"
#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/model/synth.h"
#include "libref/plan/fault.h"
#include "libref/plan/point.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the documentation says of one word: an id of a mistake, a term, a metric. */

enum { PAGE_MAX = 1 << 20, LINE = 400 };

/* Pages with definitions, the first first; then those that only mention words. */
static const char *const pages[] = {
	"compare.md",        "explain.md",
	"limits.md",         "points.md",
	"checkpoint.md",     "names.md",
	"dump.md",           "isolate.md",
	"weights.md",        "evaluate.md",
	"usage.md",          "models.md",
	"faults.md",         "json.md",
	"table.md",          "field.md",
	"SKILL.md",          "SECURITY.md",
	"selftest.md",       "performance.md",
	"guides/pytorch.md", "guides/any-model.md",
	"guides/c.md",       "guides/llama.cpp.md",
	"guides/rust.md",    "develop.md",
};
enum { N_PAGES = sizeof pages / sizeof *pages, N_DEFINE = 11 };

/* ---- mistakes ------------------------------------------------------------------------------- */

/* Prints the lines of the catalogue under an id. */
static bool print_catalogued(const char *id)
{
	vn_text_stream page;
	bool           mine = false, found = false;

	vn_fault_page(vn_alloc_stream(&page));
	for (char *line = vn_alloc_streamed(&page), *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		const size_t own = strcspn(line, " \n");
		if (own)
			mine = strlen(id) == own && strncasecmp(line, id, own) == 0;
		mine = mine && line[strspn(line, " ")] != '>';
		if (mine && (size_t)(end - line) > 1)
			fwrite(line, 1, (size_t)(end - line), stdout);
		found = found || mine;
	}
	free(page.text);
	return found;
}

/* "R2.1.5e5" is R2 with a number. */
static bool print_family(const char *id)
{
	vn_mistake best = VN_NO_MISTAKE;

	for (int m = VN_NO_MISTAKE + 1; m < VN_N_MISTAKES; m++) {
		const char  *one = vn_mistake_id((vn_mistake)m);
		const size_t n = strlen(one);
		if (strncasecmp(id, one, n) == 0 && (!id[n] || id[n] == '.') && n >= strlen(vn_mistake_id(best)))
			best = (vn_mistake)m;
	}
	if (best == VN_NO_MISTAKE)
		return false;
	vn_say(stdout, "%-14s ", vn_mistake_id(best));
	for (const char *at = vn_mistake_title(best), *end; *at; at = end) {
		end = at + (*at == '%' ? strspn(at + 1, "+-#0123456789.l") + 2 : strcspn(at, "%"));
		vn_say(stdout, "%.*s", *at == '%' ? 1 : (int)(end - at), *at == '%' ? "N" : at);
	}
	vn_say(stdout, "%s\n",
	       strlen(id) > strlen(vn_mistake_id(best)) ? " (in the id, the number that explain fitted)" : "");
	return true;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* The lines of a page from..to. */
static void print_lines(const char *page, const char *from, const char *to)
{
	vn_say(stdout, "%s: ", page);
	fwrite(from, 1, (size_t)(to - from), stdout);
	vn_say(stdout, "\n");
}

/* Does the text begin with the word, and not go on with a letter of it? */
static bool is_whole(const char *text, const char *word)
{
	const size_t n = strlen(word);

	return strncasecmp(text, word, n) == 0 && !isalnum((unsigned char)text[n]) && text[n] != '_';
}

/* Does the text begin with the word, which ends there? */
static bool is_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	return strncasecmp(text, word, n) == 0 && (!text[n] || strchr("*`|:,.; \n", text[n]));
}

static const char *line_end(const char *at)
{
	return at + strcspn(at, "\n");
}

/* The end of what begins at a line: of a list's item, or a row of a table. */
static const char *item_end(const char *at)
{
	const char *end = line_end(at);

	while (*at == '-' && end[0] == '\n' && strncmp(end + 1, "  ", 2) == 0)
		end = line_end(end + 1);
	return end;
}

static const char *section_end(const char *at)
{
	const char *end = strstr(at, "\n## ");
	return end ? end : at + strlen(at);
}

/* "The exit status:" goes on with what follows. */
static const char *paragraph_end(const char *at)
{
	const char *end = strstr(at, "\n\n");

	while (end && end > at && end[-1] == ':')
		end = strstr(end + 2, "\n\n");
	return end ? end : at + strlen(at);
}

/* Each looks for the word in one way. Returns where it is, and its end. */
static const char *find_entry(const char *text, const char *word, const char **end)
{
	for (const char *at = text; *at; at = line_end(at), at += *at == '\n')
		for (const char *in = at + strspn(at, "-| *`"); (*at == '-' || *at == '|') && in - at > 2;) {
			if (is_word(in, word)) {
				*end = item_end(at);
				return at;
			}
			in += strcspn(in, "`\n"); /* "| `missing`, `extra` |" */
			if (strncmp(in, "`, `", 4) != 0)
				break;
			in += 4;
		}
	return NULL;
}

static const char *find_section(const char *text, const char *word, const char **end)
{
	for (const char *at = text; (at = strstr(at, "\n## ")); at += 4)
		if (is_word(at + 4, word)) {
			*end = section_end(at + 4);
			return at + 1;
		}
	return NULL;
}

/* The paragraph around a place, or the row of a table or a list. */
static const char *around(const char *text, const char *at, const char **end)
{
	const char *begin = at;

	while (begin > text && begin[-1] != '\n')
		begin--;
	if (*begin == '|' || *begin == '-') {
		*end = item_end(begin);
		return begin;
	}
	while (at > text && !(at[-1] == '\n' && (at - text < 2 || at[-2] == '\n')))
		at--;
	*end = paragraph_end(at);
	return at;
}

/* "*word*", but not "**word**". */
static const char *find_definition(const char *text, const char *word, const char **end)
{
	char marked[LINE];

	snprintf(marked, sizeof marked, "*%s*", word);
	for (const char *found = text; (found = vn_text_find(found, marked)); found++)
		if (found == text || found[-1] != '*')
			return around(text, found, end);
	return NULL;
}

static const char *find_marked(const char *text, const char *word, const char **end)
{
	char marked[LINE];

	snprintf(marked, sizeof marked, "`%s`", word);
	const char *found = vn_text_find(text, marked);
	return found ? around(text, found, end) : NULL;
}

static const char *find_mention(const char *text, const char *word, const char **end)
{
	for (const char *at = text; *at; at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) && is_whole(at, word))
			return around(text, at, end);
	return NULL;
}

/* Prints what the first of the pages says of the word, and returns the place of this page; n: none
 * has it. `print` false: only looks. */
static int print_found(const char *(*find)(const char *, const char *, const char **), const char *word, int from,
                       int n, bool print)
{
	for (int i = from; i < n; i++) {
		char           path[PATH_MAX];
		VN_FREED char *text = NULL;
		const char    *end = NULL, *found;
		size_t         bytes;
		vn_error       err;
		if (vn_shipped_find(".", pages[i], path, &err) || vn_read_text(path, PAGE_MAX, &text, &bytes, &err) ||
		    !(found = find(text, word, &end)))
			continue;
		if (print)
			print_lines(pages[i], found, end);
		return i;
	}
	return n;
}

typedef const char *finder(const char *, const char *, const char **);

/* n: of how many pages; 1: of compare.md, with the glossary. */
static bool print_defined(const char *word, finder *const *find, int n_finders, int n)
{
	for (int how = 0; how < n_finders; how++)
		if (print_found(find[how], word, 0, n, true) < n)
			return true;
	return false;
}

static const vn_option *option_of(const vn_command *c, const char *name)
{
	const vn_option *o = NULL;

	for (int i = 0; (o = vn_option_row(c, i)); i++)
		if (vn_option_is_of(c, o) && strcasecmp(o->name, name) == 0)
			break;
	return o;
}

/* Do two commands explain an option of this name in the same words? */
static bool is_shared(const vn_command *a, const vn_command *b, const char *name)
{
	const vn_option *mine = option_of(a, name), *other = option_of(b, name);

	return mine && other && strcmp(mine->help, other->help) == 0;
}

static bool print_option(const vn_command_table *t, const char *name)
{
	bool found = false;

	for (int i = 0; i < t->n; i++) {
		const vn_command *c = t->command[i].options;
		bool new = option_of(c, name) != NULL;
		for (int k = 0; k < i; k++)
			new = new && !is_shared(t->command[k].options, c, name);
		if (!new)
			continue;
		vn_say(stdout, "option of %s", c->name);
		for (int k = i + 1; k < t->n; k++)
			if (is_shared(c, t->command[k].options, name))
				vn_say(stdout, ", %s", t->command[k].options->name);
		vn_say(stdout, ":\n");
		vn_option_print(option_of(c, name), stdout);
		found = true;
	}
	return found;
}

static bool print_known(const vn_command_table *t, const char *word)
{
	static finder *const find[] = { find_entry, find_definition, find_section }, *const define = find_definition;

	return print_defined(word, find, 3, 1) || print_defined(word, &define, 1, N_DEFINE) || print_option(t, word) ||
	       print_defined(word, find, 3, N_DEFINE);
}

/* The first paragraph that has the word, and which other pages have it too. */
static bool print_mentioned(const char *word)
{
	const bool marked = print_found(find_marked, word, 0, N_PAGES, false) < N_PAGES;
	const int  first = print_found(marked ? find_marked : find_mention, word, 0, N_PAGES, false);
	int        n = 0;

	if (first < N_PAGES) {
		vn_say(stdout, "mentioned in:\n");
		print_found(marked ? find_marked : find_mention, word, first, N_PAGES, true);
	}
	for (int i = 0; first < N_PAGES && (i = print_found(find_mention, word, i, N_PAGES, false)) < N_PAGES; i++)
		if (i != first)
			vn_say(stdout, "%s%s", n++ ? ", " : "also in: ", pages[i]);
	if (n)
		vn_say(stdout, "\n");
	return first < N_PAGES;
}

/* "layer1.q_rope" is the point q_rope. */
static bool print_point(const char *name)
{
	vn_point    p;
	const char *dot = strrchr(name, '.');

	if (!vn_point_from_name(dot ? dot + 1 : name, &p))
		return false;
	vn_say(stdout, "%s: %s; axes %s\n", vn_point_get(p)->name, vn_point_get(p)->means, vn_point_get(p)->axes);
	return true;
}

/* "nmse_over_floor" is a key of limits: a metric in floors. */
static bool print_metric(const char *word)
{
	static const char over[] = "_over_floor", without[] = "_without_floor";
	const size_t      n = strlen(word);
	const bool        floors = n > sizeof over && strcmp(word + n - (sizeof over - 1), over) == 0,
			   none = n > sizeof without && strcmp(word + n - (sizeof without - 1), without) == 0;
	const size_t own = n - (floors ? sizeof over - 1 : none ? sizeof without - 1 : 0);

	for (int m = 0; m < VN_N_METRICS; m++) {
		const vn_metric_info *i = vn_metric_get((vn_metric)m);
		if (strlen(i->name) != own || strncmp(i->name, word, own) != 0)
			continue;
		vn_say(stdout, "%s: %s%s\n", word, i->means,
		       floors ? "; divided by that of the floor"
		       : none ? "; of a checkpoint without a floor"
		              : "");
		return true;
	}
	return false;
}

/* Prints what is known of the word: the row of the catalogue ("R2.1e4"), the entry of a glossary or
 * of a table, the section of this title, the paragraph that defines it, the option of this name, or
 * a paragraph that has it. Returns false, and prints nothing, if no page has it. */
static bool print_word(const vn_command_table *t, const char *word)
{
	char         one[LINE];
	const size_t n = strlen(word);

	if (n < 2 || n > 60 || strpbrk(word, "\n*|`"))
		return false;
	if (print_catalogued(word) || print_family(word)) {
		vn_fault_signs(word, stdout);
		return true;
	}
	if (print_metric(word) || print_point(word) || print_known(t, word))
		return true;
	for (size_t end = n - 1; end > 1 && n - end <= 2 && word[n - 1] == 's'; end--) { /* "origins", "statuses" */
		snprintf(one, sizeof one, "%.*s", (int)end, word);
		if (print_known(t, one))
			return true;
	}
	return print_mentioned(word);
}

typedef struct settings {
	const char *man, *man_pages;
	char        topic[LINE]; /* "first divergence" is one */
	int         shell;       /* N_SHELLS: none */
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

/* Guides are found without their folder, too. */
static vn_status find_page(const char *name, char path[PATH_MAX])
{
	vn_error  err;
	vn_status st = vn_shipped_find(".", name, path, &err);

	return st && !strchr(name, '/') ? vn_shipped_find("guides", name, path, &err) : st;
}

/* "usage" for "usage.md", "c" and "guides/c" for "guides/c.md". */
static bool is_bare_page(const char *name, char page[NAME_MAX + 1])
{
	char path[PATH_MAX];

	return snprintf(page, NAME_MAX + 1, "%s.md", name) <= NAME_MAX && is_page(page) && !find_page(page, path);
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
	char path[PATH_MAX];

	if (find_page(name, path)) {
		vn_say(stderr, "vernier help: no page '%.60s'; vernier help usage.md has links to all pages\n", name);
		return 2;
	}
	vn_printed_page();
	return print_file(path);
}

static int no_topic(const vn_command_table *t, const char *topic)
{
	vn_nearest near;

	vn_nearest_start(&near, topic);
	for (int i = 0; i < t->n; i++)
		vn_nearest_try(&near, t->command[i].options->name);
	for (int i = 0; i < N_PAGES; i++)
		vn_nearest_try(&near, pages[i]);
	vn_say(stderr, "vernier help: no command, page or term '%.60s'%s; %s, vernier help usage.md is where to begin\n",
	       topic, vn_nearest_hint(&near),
	       topic[0] >= 'A' && topic[0] <= 'Z' && isdigit((unsigned char)topic[1])
	           ? "vernier points --faults lists the known mistakes"
	           : "vernier help lists the commands");
	return 2;
}

/* Prints what is known of a command or a page; a command comes first. */
static int print_topic(const vn_command_table *t, const char *topic)
{
	const vn_command_row *c = vn_command_table_find(t, topic);
	char                  page[NAME_MAX + 1], first[LINE];

	snprintf(first, sizeof first, "%.*s", (int)strcspn(topic, " "), topic);
	if (!c && (c = vn_command_table_find(t, first)) && vn_command_table_find(t, topic + strlen(first) + 1))
		return vn_complain("help", "'%s': only one COMMAND or PAGE is allowed", topic + strlen(first) + 1);
	if (c) { /* also of "capture ref" */
		vn_options_help(c->options, stdout);
		return 0;
	}
	if (strncmp(topic, "specs/", 6) == 0)
		topic += 6;
	return is_page(topic)              ? print_page(topic)
	       : is_bare_page(topic, page) ? print_page(page)
	       : print_word(t, topic)      ? 0
	                                   : no_topic(t, topic);
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
	if (n && optind < argc)
		return vn_complain("help", "'%s': no COMMAND or PAGE is allowed with an option", argv[optind]);
	for (int i = optind; i < argc; i++)
		vn_text_add(k->topic, sizeof k->topic, "%s%s", *k->topic ? " " : "", argv[i]);
	return 0;
}

int cmd_help(int argc, char **argv, const vn_command_table *t)
{
	settings k = { .shell = N_SHELLS };
	if (argc == 2 && strncmp(argv[1], "--", 2) == 0 && !option_of(&vn_help_command, argv[1] + 2) &&
	    print_option(t, argv[1] + 2))
		return 0;
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
	if (*k.topic)
		return print_topic(t, k.topic);
	vn_command_table_usage(t, stdout);
	return 0;
}
