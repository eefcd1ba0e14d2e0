/* options.h: one table of a command's options, used for parsing, help, manual and completions.
 *
 *	typedef struct command { const char *model; int threads; bool strict; } command;
 *	static const vn_option options[] = {
 *		{ "model", 'm', VN_INTO(command, model), .argument = "MODEL",
 *		  .help = "The model that ran." },
 *		{ "threads", 0, VN_INTO(command, threads), VN_RANGE(1, 1024), .argument = "N",
 *		  .help = "Default: one thread per processor." },
 *		{ "strict", 0, VN_INTO(command, strict), .help = "Treat every warning as a failure." },
 *	};
 *
 * --help, and -h for the short form, are options of every table and need no row.
 *
 * Owner    values point into argv.
 * Threads  uses the globals of getopt: one command line at a time.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { VN_MOST_OPTIONS = 48 }; /* rows of a table */

typedef struct vn_option vn_option;

/* Reads one value (NULL for an option without argument) into the command's struct. */
typedef vn_status vn_option_taker(void *to, const vn_option *option, const char *value, vn_error *err);

typedef enum vn_option_kind {
	VN_HEADING,   /* not an option: `help` is the title of the group that begins here */
	VN_FLAG,      /* bool, set to true */
	VN_TEXT,      /* const char * */
	VN_OPTIONAL,  /* const char *: the text after "--name=", or "" for --name alone; no letter */
	VN_INT,       /* int, low to high */
	VN_WHOLE,     /* int64_t, low to high */
	VN_DOUBLE,    /* double, low to high */
	VN_CHOICE,    /* int: the index of the value among the words of `words`, or of `argument`: "text|json" */
	VN_LIST,      /* const char *[most], with its length in an int at `count`; may be repeated */
	VN_TAKE,      /* `take` reads it */
	VN_TAKE_EACH, /* same; may be repeated */
	VN_BITS,      /* unsigned: `take` adds bits; may be repeated */
} vn_option_kind;

struct vn_option {
	/* without dashes; NULL: a positional argument (VN_TAKE_EACH), in command-line order */
	const char        *name;
	char               letter; /* 0: none */
	vn_option_kind     kind;
	size_t             at; /* offset in the command's struct */
	size_t             count;
	int                most;
	int64_t            low, high;
	vn_option_taker   *take;
	/* The placeholder of the value in help; NULL: takes no value. FILE, PATH, DIR, MODEL, REC, REF,
	 * MAP and LIMITS are completed as files, WORDS as several of `words` with commas between
	 * them. */
	const char        *argument;
	/* the allowed values, "f32|f64"; NULL: `argument` describes them */
	const char *const *words;
	/* sentences that state the default; the first is shown with completions */
	const char        *help;
	/* in a table that two commands share: the name of the only command that has this option; NULL:
	 * both */
	const char        *only;
	/* for those who go through what is set (vn_options_each): the verdict depends on it; a command
	 * that a report proposes repeats it */
	bool               changes_verdict, repeated;
	/* If no argument gives it, the user's settings may (vn_options_settings), but not beside one of
	 * these options, "floor|bitwise"; NULL: they may not. */
	const char        *set_without;
	/* and only beside this one; NULL: always */
	const char        *set_with;
	/* options that may not be given beside it, "floor|model", and why: "--vote has no reference";
	 * options of which it needs one. NULL: none */
	const char        *not_with, *because, *needs;
};

/* Offset of the field that receives the value, and the kind of option from the field's type. */
#define VN_INTO(type, field) \
	.kind = _Generic(((type *)0)->field, bool: VN_FLAG, const char *: VN_TEXT, int: VN_INT, int64_t: VN_WHOLE, \
	                 double: VN_DOUBLE), .at = offsetof(type, field)
#define VN_RANGE(least, greatest) .low = (least), .high = (greatest)
#define VN_MAYBE(type, field) \
	.kind = _Generic(((type *)0)->field, const char * : VN_OPTIONAL), .at = offsetof(type, field)
#define VN_CHOOSE(type, field) .kind = _Generic(((type *)0)->field, int : VN_CHOICE), .at = offsetof(type, field)
#define VN_COLLECT(type, field, length) \
	.kind = _Generic(((type *)0)->length, int \
	                 : VN_LIST), \
	.at = offsetof(type, field), .count = offsetof(type, length), \
	.most = (int)(sizeof((type *)0)->field / sizeof(const char *))
#define VN_GROUP(title) \
	{ \
		.kind = VN_HEADING, .help = (title) \
	}

typedef struct vn_command {
	const char      *name;     /* "weights" */
	const char      *synopsis; /* what may follow the name; one line per form */
	const char      *about;    /* paragraphs, each ending with a newline */
	const vn_option *option;
	int              n;
	const char      *status; /* what each exit status means: "0 done, 2 trouble" */
	bool             model;  /* a model is given without an option: MODEL in the synopsis */
	char             letter; /* the command is an option of the program, too: --version, -v. 0: it is not */
	/* a command with the same table: the description ends with the options that it alone has; NULL:
	 * none */
	const char      *twin;
	const char      *examples; /* two command lines, with a newline between them; NULL: none */
	bool             tells;    /* its report names the settings that it took; else a note on stderr does */
} vn_command;

/* Reads argv into *to, the command's struct. Remaining arguments begin at argv[optind]. Returns 0:
 * continue; 1: help was asked for, and is on stdout; 2: an error, and stderr has a line. */
int vn_options_read(const vn_command *c, int argc, char **argv, void *to);

/* Calls `say` for every value that *from, the command's struct, holds of an option, in the order of
 * the table: NULL of a flag; VN_BITS as a number. A number below its range, NULL and false are not
 * set; what `take` reads is left out. */
typedef void vn_option_said(void *context, const vn_option *o, const char *value);
void         vn_options_each(const vn_command *c, const void *from, vn_option_said *say, void *context);

/* Does argv have the option with this name and two dashes, perhaps abbreviated? Reads nothing and
 * reports no error. A value of another option that looks like it counts, too. */
bool vn_option_is_given(const vn_command *c, const char *name, int argc, char **argv);

/* Sets *value and *from (who gives it) of an option that the user's settings give; they live until
 * the program ends. files: files may be read for it. */
typedef vn_status vn_option_setting(const char *command, const char *name, bool files, const char **value,
                                    const char **from, vn_error *err);
/* Of a row whose option only this parser heeds. */
vn_option_taker   vn_take_nothing;
#define VN_NO_CONFIG_OPTION \
	{ \
		"no-config", 0, .kind = VN_TAKE, .take = vn_take_nothing, \
						.help = "Do not read vernier.yaml, which gives model, limits, names and format to commands " \
								"in and below its folder, where options and VERNIER_MODEL do not." \
	}
/* Says where settings are found; without it, there are none. */
void        vn_options_settings(vn_option_setting *find);
/* Who gave option NAME of the last command line, if settings did; NULL: nobody, or an argument. */
const char *vn_option_origin(const char *name);
/* Takes a MODEL that no argument of the last command line gives from the settings, or NULL. Returns
 * 0, or 2 after an error message. */
int         vn_option_settled_model(const char **model);

/* Prints an error about a command line on stderr. Returns 2, the exit status. */
__attribute__((format(printf, 2, 3))) int vn_complain(const char *command, const char *format, ...);

/* ---- options_print.c ------------------------------------------------------------------------ */

/* Returns the allowed values of an option, "f32|f64"; NULL: any. */
const char *vn_option_words(const vn_option *o);
/* Prints words from column `at` on, and further lines from column `indent` on. Returns the column
 * reached. */
int         vn_options_wrap(FILE *to, const char *text, int at, int indent);
void        vn_options_help(const vn_command *c, FILE *to);
void        vn_option_print(const vn_option *o, FILE *to); /* one, as in the help */
/* The same in short, for -h: forms, names of options, examples. */
void        vn_options_brief(const vn_command *c, FILE *to);
/* Prints the command's section of the program's manual page: its forms, what it does, its options
 * and its exit status. options: false leaves the options out, as of a command whose table another
 * section prints. */
void        vn_options_section(const vn_command *c, const char *program, bool options, FILE *to);
/* Prints the command's own manual page, PROGRAM-COMMAND(1). brief: what it does, in a few words. */
void        vn_options_page(const vn_command *c, const char *program, const char *brief, FILE *to);

/* Returns the i-th row of a table, --help last; NULL at the end. */
const vn_option *vn_option_row(const vn_command *c, int i);
/* Returns whether a row of c's table is an option of c: no heading, no positional argument, not
 * another command's. */
bool             vn_option_is_of(const vn_command *c, const vn_option *o);

/* ---- completions of shells ------------------------------------------------------------------- */

typedef struct vn_completed {
	const char       *name, *help;
	const vn_command *options; /* NULL: it has none */
	const char       *first;   /* values of its first argument, "ref|gpu"; NULL: files */
	bool              files;   /* the first argument may also be a file */
	bool              last;    /* it is the last argument, or there is none */
} vn_completed;

/* Values that a command offers for an option: "fp32.yaml|q8_0.yaml". If it takes files, these are
 * offered, too. */
typedef struct vn_offer {
	const char *option, *values;
} vn_offer;

typedef struct vn_completions {
	const vn_completed *command;
	const vn_offer     *offer;
	int                 n, n_offers;
} vn_completions;

/* Prints a row for each word that completions of a program offer, inside single quotes of a shell:
 * the command (empty for the commands themselves), the word (empty for all but the first argument),
 * what follows it, the values that are offered for that (a|b|c), and a description, with tabs
 * between them. What follows: nothing to offer, files, words, either of them, a list of words with
 * commas between them, or no word of its own (empty). specs/shells reads the rows. */
void vn_options_completions(const vn_completions *c, FILE *to);
