/* options_complete.c: completions for bash, zsh and fish from tables of options; see options.h. */
#include "libref/base/options.h"

#include <string.h>

const char *const vn_shell_names = "bash|zsh|fish";

/* What may follow an option. */
typedef enum value_kind {
	NOTHING,  /* a flag */
	ANYTHING, /* a number, a glob: nothing to offer */
	FILES,
	WORDS,
	WORDS_OR_FILES,
	WORD_LIST, /* words with commas between them */
} value_kind;

static bool is_file(const char *argument)
{
	static const char *const files[] = { "FILE", "PATH", "DIR", "MODEL", "REC", "REF", "MAP", "LIMITS" };

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(argument, files[i]) == 0)
			return true;
	return false;
}

/* Whether the placeholder lists the values itself: "bf16|f8_e5m2", not "last|A-B". */
static bool is_choice(const char *argument)
{
	return strchr(argument, '|') && !strpbrk(argument, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

/* *words: set unless NOTHING is returned; NULL: no words. */
static value_kind kind_of(const vn_completions *c, const vn_option *o, const char **words)
{
	if (!o->argument || o->kind == VN_OPTIONAL)
		return NOTHING;
	*words = vn_option_words(o) ? vn_option_words(o) : is_choice(o->argument) ? o->argument : NULL;
	if (*words)
		return strcmp(o->argument, "WORDS") == 0 ? WORD_LIST : WORDS;
	for (int i = 0; i < c->n_offers; i++)
		if (strcmp(o->name, c->offer[i].option) == 0) {
			*words = c->offer[i].values;
			return is_file(o->argument) ? WORDS_OR_FILES : WORDS;
		}
	return is_file(o->argument) ? FILES : ANYTHING;
}

/* The i-th option of a command, from *at on; NULL at the end. */
static const vn_option *next_option(const vn_command *c, int *at)
{
	const vn_option *o;

	while (c && (o = vn_option_row(c, (*at)++)))
		if (vn_option_is_of(c, o))
			return o;
	return NULL;
}

/* "f32|f64" as "f32 f64". */
static void print_values(const char *words, FILE *to)
{
	for (; *words; words++)
		fputc(*words == '|' ? ' ' : *words, to);
}

/* Prints the first sentence in single quotes of a shell. zsh splits descriptions at
 * brackets and colons. */
static void print_brief(const char *help, vn_shell shell, FILE *to)
{
	for (const char *p = help; *p && !(*p == '.' && (p[1] == ' ' || !p[1])); p++)
		if (*p == '\'')
			fputs(shell == VN_FISH ? "\\'" : "'\\''", to);
		else if (*p == '\\' || (shell == VN_ZSH && strchr("[]", *p)))
			fprintf(to, "\\%c", *p);
		else if (*p == ':')
			fputs(" -", to);
		else
			fputc(*p, to);
}

static void print_commands(const vn_completions *c, FILE *to)
{
	for (int i = 0; i < c->n; i++)
		fprintf(to, "%s%s", i ? " " : "", c->command[i].name);
}

/* Prints the commands that are options of the program, too: "--help --version". */
static void print_program_options(const vn_completions *c, FILE *to)
{
	const char *before = "";

	for (int i = 0; i < c->n; i++)
		if (c->command[i].options && c->command[i].options->letter) {
			fprintf(to, "%s--%s", before, c->command[i].name);
			before = " ";
		}
}

/* ---- bash ----------------------------------------------------------------------------------- */

static void print_bash_value(const char *command, const vn_option *o, value_kind kind, const char *words, FILE *to)
{
	static const char *const names[] = {
		[ANYTHING] = "nothing", [FILES] = "files", [WORDS] = "words", [WORDS_OR_FILES] = "either", [WORD_LIST] = "list"
	};

	fprintf(to, "\t'%s --%s'", command, o->name);
	if (o->letter)
		fprintf(to, "|'%s -%c'", command, o->letter);
	fprintf(to, ") kind=%s", names[kind]);
	if (words) {
		fputs(" words='", to);
		print_values(words, to);
		fputc('\'', to);
	}
	fputs(" ;;\n", to);
}

static void print_bash_names(const vn_command *c, FILE *to)
{
	const vn_option *o;
	const char      *before = "";

	for (int at = 0; (o = next_option(c, &at)); before = " ")
		fprintf(to, "%s--%s", before, o->name);
}

static void print_bash(const vn_completions *c, FILE *to)
{
	const vn_option *o;
	const char      *words;

	/* A value may follow an equals sign, which is a word of its own in COMP_WORDS. compopt fails
	 * where no key was pressed, as in a test. */
	fprintf(
		to,
		"_%s() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} kind=files words= before=\n"
		"\tif [ \"$word\" = = ]; then word=; elif [ \"$last\" = = ]; then last=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
		"\tcase \"$COMP_CWORD ${COMP_WORDS[1]}\" in\n\t1\\ -*) kind=words words='",
		c->program);
	print_program_options(c, to);
	fputs("' ;;\n\t1\\ *) kind=words words='", to);
	print_commands(c, to);
	fputs("' ;;\n", to);
	for (int k = 0; k < c->n; k++) {
		if (c->command[k].first) {
			fprintf(to, "\t2\\ %s) kind=%s words='", c->command[k].name, c->command[k].files ? "either" : "words");
			print_values(c->command[k].first, to);
			fputs("' ;;\n", to);
		}
		if (c->command[k].last)
			fprintf(to, "\t*\\ %s) kind=nothing ;;\n", c->command[k].name);
	}
	fputs("\tesac\n\t[ \"$COMP_CWORD\" = 1 ] || case \"${COMP_WORDS[1]} $last\" in\n", to);
	for (int k = 0; k < c->n; k++)
		for (int at = 0; (o = next_option(c->command[k].options, &at));) {
			const value_kind kind = kind_of(c, o, &words);
			if (kind != NOTHING)
				print_bash_value(c->command[k].name, o, kind, words, to);
		}
	for (int k = 0; k < c->n; k++)
		if (c->command[k].options) {
			fprintf(to, "\t'%s '*) [[ $word != -* ]] || { kind=words words='", c->command[k].name);
			print_bash_names(c->command[k].options, to);
			fputs("'; } ;;\n", to);
		}
	fprintf(
		to,
		"\tesac\n\tCOMPREPLY=()\n\tcase $kind in\n"
		"\tfiles) return ;;\n"
		"\teither) COMPREPLY=($(compgen -W \"$words\" -- \"$word\"; compgen -f -- \"$word\")); compopt -o filenames "
		"2>/dev/null ;;\n"
		"\tlist) [[ $word != *,* ]] || before=${word%%,*},\n"
		"\t\tCOMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"${word##*,}\")); compopt -o nospace +o default "
		"2>/dev/null ;;\n"
		"\t*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); compopt +o default 2>/dev/null ;;\n"
		"\tesac\n}\ncomplete -o default -F _%s %s\n",
		c->program, c->program);
}

/* ---- zsh ------------------------------------------------------------------------------------ */

/* The action of _arguments, in single quotes. */
static void print_zsh_action(value_kind kind, const char *words, FILE *to)
{
	if (kind == WORDS || kind == WORDS_OR_FILES) {
		fputs(kind == WORDS ? "(" : " _alternative \"names\\:name\\:(", to); /* a bare colon would end the action */
		print_values(words, to);
		fputs(kind == WORDS ? ")" : ")\" \"files\\:file\\:_files\"", to);
	} else if (kind == WORD_LIST) {
		fputs("_values -s , word ", to);
		print_values(words, to);
	} else {
		fputs(kind == FILES ? "_files" : " ", to);
	}
}

static void print_zsh_option(const vn_completions *c, const vn_option *o, const char *dashes, const char *name,
                             FILE *to)
{
	const char      *words;
	const value_kind kind = kind_of(c, o, &words);

	fprintf(to, " \\\n\t\t'%s%s%s%s[", o->kind == VN_LIST || o->kind == VN_TAKE_EACH ? "*" : "", dashes, name,
	        kind != NOTHING && dashes[1] ? "=" : ""); /* the value may follow = or a space */
	print_brief(o->help, VN_ZSH, to);
	fputc(']', to);
	if (kind != NOTHING) {
		fprintf(to, ":%s:", o->argument);
		print_zsh_action(kind, words, to);
	}
	fputc('\'', to);
}

static void print_zsh(const vn_completions *c, FILE *to)
{
	const vn_option *o;

	fprintf(to, "#compdef %s\n_%s() {\n\tlocal -a commands\n\tcommands=(", c->program, c->program);
	for (int i = 0; i < c->n; i++) {
		fprintf(to, "'%s:", c->command[i].name);
		print_brief(c->command[i].help, VN_ZSH, to);
		fputs("' ", to);
	}
	fputs(")\n\tif (( CURRENT == 2 )); then\n"
	      "\t\tif [[ $words[2] == -* ]]; then compadd -- ",
	      to);
	print_program_options(c, to);
	fputs("; else _describe command commands; fi\n\t\treturn\n\tfi\n"
	      "\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n",
	      to);
	for (int k = 0; k < c->n; k++) {
		const vn_completed *of = &c->command[k];

		if (!of->options)
			continue;
		fprintf(to, "\t%s) _arguments", of->name);
		for (int at = 0; (o = next_option(of->options, &at));) {
			const char letter[] = { o->letter, 0 };
			if (o->letter)
				print_zsh_option(c, o, "-", letter, to);
			print_zsh_option(c, o, "--", o->name, to);
		}
		if (of->first) {
			fputs(" \\\n\t\t'1:value:", to);
			print_zsh_action(of->files ? WORDS_OR_FILES : WORDS, of->first, to);
			fputc('\'', to);
		}
		fputs(of->last ? " ;;\n" : " \\\n\t\t'*:file:_files' ;;\n", to);
	}
	fprintf(to, "\t*) _files ;;\n\tesac\n}\n_%s \"$@\"\n", c->program);
}

/* ---- fish ----------------------------------------------------------------------------------- */

static void print_fish_option(const vn_completions *c, const char *command, const vn_option *o, FILE *to)
{
	const char      *words;
	const value_kind kind = kind_of(c, o, &words);

	fprintf(to, "complete -c %s -n '__%s_in %s' -l %s", c->program, c->program, command, o->name);
	if (o->letter)
		fprintf(to, " -s %c", o->letter);
	if (kind != NOTHING)
		fputs(kind == FILES || kind == WORDS_OR_FILES ? " -r -F" : " -x", to);
	if (kind == WORD_LIST)
		fprintf(to, " -a '(__%s_list ", c->program);
	else if (kind != NOTHING && words)
		fputs(" -a '", to);
	if (kind != NOTHING && words) {
		print_values(words, to);
		fputs(kind == WORD_LIST ? ")'" : "'", to);
	}
	fputs(" -d '", to);
	print_brief(o->help, VN_FISH, to);
	fputs("'\n", to);
}

static void print_fish(const vn_completions *c, FILE *to)
{
	const vn_option *o;

	/* Three functions: whether the line is of this command; whether its first argument is being
	 * typed; words after those that stand before a comma. */
	fprintf(
		to,
		"function __%s_in\n\tset -l words (commandline -opc)\n\ttest \"$words[2]\" = $argv[1]\nend\n"
		"function __%s_first\n\t__%s_in $argv[1]; and test (count (commandline -opc)) = 2\nend\n"
		"function __%s_list\n\tset -l before (commandline -ct | string replace -r '^--[a-z-]*=' '' | string replace -r "
		"'[^,]*$' '')\n"
		"\tfor word in $argv\n\t\techo $before$word\n\tend\nend\n",
		c->program, c->program, c->program, c->program);
	for (int k = 0; k < c->n; k++) {
		const vn_completed *of = &c->command[k];

		fprintf(to, "complete -c %s -n __fish_use_subcommand -x -a %s -d '", c->program, of->name);
		print_brief(of->help, VN_FISH, to);
		fputs("'\n", to);
		if (of->first) {
			fprintf(to, "complete -c %s -n '__%s_first %s' %s -a '", c->program, c->program, of->name,
			        of->files ? "-F" : "-f");
			print_values(of->first, to);
			fputs("'\n", to);
		}
		if (of->last)
			fprintf(to, "complete -c %s -n '__%s_in %s' -f\n", c->program, c->program, of->name);
		for (int at = 0; (o = next_option(of->options, &at));)
			print_fish_option(c, of->name, o, to);
	}
	fprintf(to, "complete -c %s -n '__fish_use_subcommand; and string match -q -- \"-*\" (commandline -ct)' -f -a '",
	        c->program);
	print_program_options(c, to);
	fputs("'\n", to);
}

void vn_options_completions(vn_shell shell, const vn_completions *c, FILE *to)
{
	(shell == VN_BASH ? print_bash : shell == VN_ZSH ? print_zsh : print_fish)(c, to);
}
