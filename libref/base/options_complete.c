/* options_complete.c: what completions offer, from tables of options; see options.h. */
#include "libref/base/options.h"
#include "libref/base/text.h"

#include <string.h>

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
