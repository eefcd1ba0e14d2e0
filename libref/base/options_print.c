/* options_print.c: help and manual from a table of options; see options.h. */
#include "libref/base/options.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_file(const char *argument)
{
	return vn_text_is_word("FILE|PATH|DIR|MODEL|REC|REF|MAP|LIMITS", argument);
}

/* Whether the placeholder lists the values itself: "bf16|f8_e5m2", not "last|A-B". */
static bool is_choice(const char *argument)
{
	return strchr(argument, '|') && !strpbrk(argument, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

/* What an option takes, and the words that are offered for it; "": it takes nothing that may stand
 * in a word of its own. */
static const char *kind_of(const vn_completions *c, const vn_option *o, const char **words)
{
	*words = "";
	if (!o->argument || o->kind == VN_OPTIONAL)
		return "";
	const char *own = vn_option_words(o) ? vn_option_words(o) : is_choice(o->argument) ? o->argument : NULL;
	if (own) {
		*words = own;
		return strcmp(o->argument, "WORDS") == 0 ? "list" : "words";
	}
	for (int i = 0; i < c->n_offers; i++)
		if (strcmp(o->name, c->offer[i].option) == 0) {
			*words = c->offer[i].values;
			return is_file(o->argument) ? "either" : "words";
		}
	return is_file(o->argument) ? "files" : "nothing";
}

/* Prints the first sentence, inside single quotes of a shell. */
static void print_brief(const char *help, FILE *to)
{
	for (const char *p = help; *p && !(*p == '.' && (p[1] == ' ' || !p[1])); p++)
		if (*p == '\'')
			fputs("'\\''", to);
		else
			fputc(*p, to);
	fputc('\n', to);
}

static void print_options(const vn_completions *c, const vn_completed *of, FILE *to)
{
	const vn_option *o;
	const char      *words;

	for (int i = 0; of->options && (o = vn_option_row(of->options, i)); i++) {
		if (!vn_option_is_of(of->options, o))
			continue;
		const char *kind = kind_of(c, o, &words);
		fprintf(to, "%s\t--%s\t%s\t%s\t", of->name, o->name, kind, words);
		print_brief(o->help, to);
		if (o->letter) {
			fprintf(to, "%s\t-%c\t%s\t%s\t", of->name, o->letter, kind, words);
			print_brief(o->help, to);
		}
	}
}

void vn_options_completions(const vn_completions *c, FILE *to)
{
	for (int i = 0; i < c->n; i++) {
		const vn_completed *of = &c->command[i];

		fprintf(to, "\t%s\t%s\t%s\t", of->name,
		        of->first  ? of->files ? "either" : "words"
		        : of->last ? "nothing"
		                   : "files",
		        of->first ? of->first : "");
		print_brief(of->help, to);
		if (of->options && of->options->letter) {
			fprintf(to, "\t--%s\t\t\t", of->name);
			print_brief(of->help, to);
		}
		if (of->last)
			fprintf(to, "%s\t\tnothing\t\t\n", of->name);
		print_options(c, of, to);
	}
}

enum { WIDTH = 100, NARROWEST = 40 };
/* Where the help of an option begins: after -x and all but a few of the longest names; where that
 * leaves less than half of the line, below them. */
enum { COLUMN = 28, BELOW = 8 };
enum { ABOUT = 4096 }; /* of the paragraphs about a command */

static const vn_option help_option = { "help", 'h', .kind = VN_FLAG, .help = "Print this help; -h: in short." };

const vn_option *vn_option_row(const vn_command *c, int i)
{
	return i < c->n ? &c->option[i] : i == c->n ? &help_option : NULL;
}

bool vn_option_is_of(const vn_command *c, const vn_option *o)
{
	return o->name && o->kind != VN_HEADING && (!o->only || strcmp(o->only, c->name) == 0);
}

static bool has_option(const vn_command *c, const char *name)
{
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && strcmp(c->option[i].name, name) == 0)
			return true;
	return false;
}

/* Is o an option of the command's twin alone? */
static bool is_of_twin(const vn_command *c, const vn_option *o)
{
	return o->only && strcmp(o->only, c->twin) == 0 && !has_option(c, o->name);
}

/* Writes the command's paragraphs, and one about its twin. */
static const char *describe_command(const vn_command *c, char *text, size_t size)
{
	int left = 0;

	snprintf(text, size, "%s", c->about);
	if (!c->twin)
		return text;
	vn_text_add(text, size, "\nThe options are those of vernier %s", c->twin);
	for (int i = 0; i < c->n; i++)
		left += is_of_twin(c, &c->option[i]);
	const char *before = ", without ";
	for (int i = 0; i < c->n; i++)
		if (is_of_twin(c, &c->option[i])) {
			vn_text_add(text, size, "%s--%s", before, c->option[i].name);
			before = --left > 1 ? ", " : " and ";
		}
	vn_text_add(text, size, ".");
	return text;
}

/* ---- wrapped text --------------------------------------------------------------------------- */

/* Returns the width of text on `to`, from 40 to 100: the variable COLUMNS, else the terminal's
 * width, else 100. */
static int text_width(FILE *to)
{
	const char    *columns = getenv("COLUMNS");
	struct winsize w = { 0 };
	int64_t        width = 0;
	/* to may be a stream of printed.h, which has no descriptor. */
	const int      fd = to == stdout ? STDOUT_FILENO : to == stderr ? STDERR_FILENO : fileno(to);

	if ((!columns || !vn_text_whole(columns, 1, INT_MAX, &width)) && fd >= 0 && isatty(fd) &&
	    ioctl(fd, TIOCGWINSZ, &w) == 0)
		width = w.ws_col;
	return width == 0 || width > WIDTH ? WIDTH : width < NARROWEST ? NARROWEST : (int)width;
}

int vn_options_wrap(FILE *to, const char *text, int at, int indent)
{
	const int width = text_width(to);
	while (*text) {
		text += strspn(text, " ");
		const int n = (int)strcspn(text, " ");
		if (n && at > indent && at + 1 + n > width) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
		} else if (n && at > indent) {
			fputc(' ', to);
			at++;
		}
		fprintf(to, "%.*s", n, text);
		at += n;
		text += n;
	}
	return at;
}

/* "f32|f64" as "f32, f64". */
static void separate_words(const char *words, char *text, size_t room)
{
	size_t used = 0;
	for (; *words && used + 3 < room; words++) {
		text[used++] = *words == '|' ? ',' : *words;
		if (*words == '|')
			text[used++] = ' ';
	}
	text[used] = '\0';
}

/* The help text of an option. */
static void describe_option(const vn_option *o, char *text, size_t room)
{
	char words[400] = "";
	if (o->words)
		separate_words(*o->words, words, sizeof words);
	snprintf(text, room, "%s%s%s%s%s%s", o->help, *words ? " " : "", *words ? o->argument : "", *words ? ": " : "",
	         words, *words ? "." : "");
	if (o->kind == VN_LIST || o->kind == VN_TAKE_EACH || o->kind == VN_BITS)
		strncat(text, " May be repeated.", room - strlen(text) - 1);
}

/* Prints headings, between two texts, and options. */
static void print_rows(const vn_command *c, const char *before, const char *after,
                       void (*print)(const vn_option *, FILE *), FILE *to)
{
	for (int i = 0; vn_option_row(c, i); i++)
		if (vn_option_row(c, i)->kind == VN_HEADING)
			fprintf(to, "%s%s%s", before, vn_option_row(c, i)->help, after);
		else if (vn_option_is_of(c, vn_option_row(c, i)))
			print(vn_option_row(c, i), to);
}

/* ---- --help ---------------------------------------------------------------------------------- */

void vn_option_print(const vn_option *o, FILE *to)
{
	char      left[160], text[1200];
	char      letter[5] = "";
	const int column = text_width(to) < 2 * COLUMN ? BELOW : COLUMN;

	if (o->letter)
		snprintf(letter, sizeof letter, "-%c,", o->letter);
	snprintf(left, sizeof left, o->kind == VN_OPTIONAL ? "  %-3s --%s[=%s%s]" : "  %-3s --%s%s%s", letter, o->name,
	         o->argument && o->kind != VN_OPTIONAL ? " " : "", o->argument ? o->argument : "");
	int at = fprintf(to, "%s", left);
	if (at > column - 2) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", column - at, "");
	describe_option(o, text, sizeof text);
	vn_options_wrap(to, text, column, column);
	fputc('\n', to);
}

static void print_synopsis(const vn_command *c, FILE *to)
{
	const char *lead = "usage:", *line = c->synopsis;
	do {
		char      form[400];
		const int n = (int)strcspn(line, "\n");
		const int indent = fprintf(to, "%s vernier %s%s", lead, c->name, n ? " " : "");
		snprintf(form, sizeof form, "%.*s", n, line);
		vn_options_wrap(to, form, indent, indent);
		fputc('\n', to);
		line += n + (line[n] == '\n');
		lead = "      ";
	} while (*line);
}

static void print_paragraphs(const char *text, FILE *to)
{
	while (*text) {
		char      one[1200];
		const int n = (int)strcspn(text, "\n");
		snprintf(one, sizeof one, "%.*s", n, text);
		vn_options_wrap(to, one, 0, 0);
		fputc('\n', to);
		text += n + (text[n] == '\n');
	}
}

static void print_examples(const vn_command *c, FILE *to)
{
	char line[200];

	if (!c->examples)
		return;
	fputs("\nExamples:\n", to);
	for (const char *at = c->examples; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
		fputs("  ", to);
		vn_options_wrap(to, line, 2, 4);
		fputc('\n', to);
	}
}

void vn_options_brief(const vn_command *c, FILE *to)
{
	char text[2000] = "";

	print_synopsis(c, to);
	for (int i = 0; vn_option_row(c, i); i++) {
		const vn_option *o = vn_option_row(c, i);
		if (o->kind != VN_HEADING && vn_option_is_of(c, o))
			vn_text_add(text, sizeof text,
			            !o->argument             ? "%s--%s"
			            : o->kind == VN_OPTIONAL ? "%s--%s[=%s]"
			                                     : "%s--%s %s",
			            *text ? ", " : "", o->name, o->argument);
	}
	fputs("\noptions: ", to);
	vn_options_wrap(to, text, 9, 9);
	fputc('\n', to);
	print_examples(c, to);
	vn_say(to, "\nAll of it: vernier %s --help\n", c->name);
}

void vn_options_help(const vn_command *c, FILE *to)
{
	char about[ABOUT];

	print_synopsis(c, to);
	fputc('\n', to);
	print_paragraphs(describe_command(c, about, sizeof about), to);
	if (!c->n || c->option[0].kind != VN_HEADING)
		fputs("\nOptions:\n", to);
	print_rows(c, "\n", ":\n", vn_option_print, to);
	print_examples(c, to);
	if (c->status) {
		char text[400];
		snprintf(text, sizeof text, "Exit status: %s.", c->status);
		fputc('\n', to);
		print_paragraphs(text, to);
	}
}

/* ---- the manual ------------------------------------------------------------------------------ */

static bool ends_name(char c)
{
	return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-');
}

/* Prints option names in bold, escapes backslashes for roff, and starts a line
 * for each sentence. */
static void print_roff(const char *text, FILE *to)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", to);
	for (const char *p = text; *p; p++) {
		if (p[0] == '-' && p[1] == '-' && !ends_name(p[2]) && (p == text || ends_name(p[-1]))) {
			fputs("\\fB", to);
			while (!ends_name(*p))
				fputc(*p++, to);
			fputs("\\fR", to);
			p--;
		} else if (p > text && p[-1] == '.' && *p == ' ' && p[1] >= 'A' && p[1] <= 'Z') {
			fputc('\n', to);
		} else if (*p == '\\') {
			fputs("\\e", to);
		} else {
			fputc(*p, to);
		}
	}
}

static void print_entry(const vn_option *o, FILE *to)
{
	char text[1200];

	fputs(".TP\n\\fB", to);
	if (o->letter)
		fprintf(to, "-%c\\fR, \\fB", o->letter);
	fprintf(to, "--%s\\fR", o->name);
	if (o->argument)
		fprintf(to, o->kind == VN_OPTIONAL ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", o->argument);
	fputc('\n', to);
	describe_option(o, text, sizeof text);
	print_roff(text, to);
	fputc('\n', to);
}

/* Prints each line of text, with `between` before all but the first. */
static void print_lines(const char *text, const char *before, const char *between, FILE *to)
{
	for (const char *lead = ""; *text; lead = between) {
		char      line[1200];
		const int n = (int)strcspn(text, "\n");
		snprintf(line, sizeof line, "%.*s", n, text);
		fprintf(to, "%s%s", lead, before);
		print_roff(line, to);
		fputc('\n', to);
		text += n + (text[n] == '\n');
	}
}

/* Prints a line for each form of the command. */
static void print_forms(const vn_command *c, const char *program, FILE *to)
{
	char before[80];

	snprintf(before, sizeof before, "\\fB%s %s\\fR ", program, c->name);
	print_lines(c->synopsis, before, ".br\n", to);
	if (!*c->synopsis)
		fprintf(to, "%s\n", before);
}

void vn_options_section(const vn_command *c, const char *program, bool options, FILE *to)
{
	char about[ABOUT];

	print_forms(c, program, to);
	fputs(".PP\n", to);
	print_lines(describe_command(c, about, sizeof about), "", ".PP\n", to);
	for (int i = 0; options && vn_option_row(c, i); i++)
		if (vn_option_is_of(c, vn_option_row(c, i)))
			print_entry(vn_option_row(c, i), to);
	if (c->status) {
		fputs(".PP\nExit status: ", to);
		print_roff(c->status, to);
		fputs(".\n", to);
	}
}

void vn_options_page(const vn_command *c, const char *program, const char *brief, FILE *to)
{
	char about[ABOUT];

	fprintf(to, ".TH %s-%s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n%s-%s \\- %s\n.SH SYNOPSIS\n", program,
	        c->name, program, VERNIER_VERSION, program, c->name, brief);
	print_forms(c, program, to);
	fputs(".SH DESCRIPTION\n", to);
	print_lines(describe_command(c, about, sizeof about), "", ".PP\n", to);
	fputs(".SH OPTIONS\n", to);
	print_rows(c, ".SS ", "\n", print_entry, to);
	if (c->status) {
		fputs(".SH EXIT STATUS\n", to);
		print_lines(c->status, "", "", to);
	}
	fprintf(to, ".SH SEE ALSO\n.BR %s (1)\n", program);
}

const char *vn_option_words(const vn_option *o)
{
	return o->words ? *o->words : o->kind == VN_CHOICE ? o->argument : NULL;
}
