/* options.h: the command-line options that several commands of compare/ share.
 *
 * command is the subcommand's name, for error messages (vn_complain). A usage error is exit status
 * 2. Option values point into argv.
 */
#pragma once

#include "compare/comparison/comparison.h"

#include "capture/base/option_rows.h"
#include "capture/run/prompt.h"
#include "compare/text/lines.h"
#include "libref/base/options.h"
#include "libref/base/shell.h"

#include <getopt.h>

enum { VN_MAX_POINTS = 64 };

/* Rows of option tables; more are in capture/base/option_rows.h. field: the member of the command's
 * struct `type` that receives the value. */
#define VN_FORMAT_OPTION(type, field, about_json) \
	{ \
		"format", 0, VN_CHOOSE(type, field), .argument = "text|json", \
											 .help = "Form of the report. Default: text." about_json \
	}

/* Parameters: as of VN_NAMES_OPTION. */
#define VN_REF_NAMES_OPTION(type, list, n, whose) \
	{ \
		"ref-names", 0, VN_COLLECT(type, list, n), .argument = "MAP", .changes_verdict = true, .repeated = true, \
												   .help = "Translate " whose " names. Default: names as they are." \
	}

/* --color: of text on stdout. */
typedef enum vn_colour_choice { VN_COLOUR_AUTO, VN_COLOUR_ALWAYS, VN_COLOUR_NEVER } vn_colour_choice;
#define VN_COLOUR_OPTION(type, field) \
	{ \
		"color", 0, VN_CHOOSE(type, field), .argument = "auto|always|never", \
											.help = "Colours of the text on stdout. Default: auto, on a terminal; " \
													"NO_COLOR and CLICOLOR_FORCE are obeyed." \
	}

/* Takes --allow WORDS: adds the words' bits to the unsigned at the option's place. */
vn_option_taker vn_take_allow;
/* Takes the single argument after the options, MODEL. Returns 0, or 2 after an error message. */
int             vn_option_model(const char *command, int argc, char *const *argv, const char **model);

/* Adds a note for each option that the user's settings gave: "--limits FILE: from vernier.yaml".
 * set (n): { "--limits", FILE } or { "MODEL", PATH }; NULL: the command does not use it. */
void vn_options_notes(const char *const (*set)[2], int n, vn_lines *notes);
/* Prints them on stderr, for a command that ends without the report that would show them. */
void vn_options_print_notes(const char *command, const vn_lines *notes);

/* Whether the path is a model: a GGUF file by its name, or a folder with config.json. */
bool vn_is_model(const char *path);
/* Checks that both paths are folders, or neither is. hint: the end of the message, or "". Returns
 * 0, or 2 after an error message. */
int  vn_options_check_folders(const char *command, const char *ref, const char *cand, const char *hint);

/* Writes the options that select these tokens, with a space before each, such as " --ids-from
 * ref.h5". "" if they do not fit. */
void vn_options_say_source(const vn_prompt_source *from, char line[VN_SHELL_LINE]);
/* Parses the precision given to option --NAME, one of the names "f32|f16". Returns 0, or 2 after an
 * error message. */
int  vn_option_policy(const char *command, const char *name, const char *names, const char *word, vn_policy *policy);

/* The options that all comparing commands share: how to compare, not which files. o points into
 * this struct, so do not move it while o is in use. */
typedef struct vn_comparing {
	vn_compare_options o;
	const char        *precision; /* value of --floor-precision; NULL: not given */
	const char        *said;      /* value of --precision; NULL: not given */
	vn_policy          policy, said_policy;
	const char        *point[VN_MAX_POINTS];
} vn_comparing;

#define VN_PRECISION_OPTION(type, how) \
	{ \
		"precision", 0, VN_INTO(type, how.said), \
			.argument = "P", .words = &vn_policy_names, .changes_verdict = true, .repeated = true, \
			.help = \
				"The precision that CAND computed in: it selects limits and floor. Roles with another format " \
				"follow the name: f32,cache=f16. Roles: weights, products, linear, cache, softmax. Formats: " \
				"tf32, f16, bf16, q8_0, q8_0-rotated, int8, int8-token, int8-channel, int8-inputs, q8-inputs, f8, " \
				"f8-scaled; of a cache also F-prompt. Default: CAND's; " \
				"if nobody stated it, and with --model, also the roles that the numbers show." \
	}
#define VN_FLOOR_PRECISION_OPTION(type, how) \
	{ \
		"floor-precision", 0, VN_INTO(type, how.precision), \
			.argument = "P", .words = &vn_policy_names, .changes_verdict = true, .repeated = true, \
			.help = "The precision of the floor. Default: CAND's precision." \
	}
#define VN_POINTS_OPTION(type, how) \
	{ \
		"points", 0, VN_COLLECT(type, how.point, how.o.n_points), \
			.argument = "GLOB", .changes_verdict = true, .repeated = true, \
			.help = "Compare only these checkpoints, on both sides. A GLOB that matches nothing is an error (exit " \
					"status 2). Default: all." \
	}
/* field: an unsigned; what: "" or " the recording" */
#define VN_ALLOW_OPTION(type, field, what) \
	{ \
		"allow", 0, \
			.kind = VN_BITS, .take = vn_take_allow, .at = offsetof(type, field), .argument = "WORDS", \
			.words = &vn_allow_names, .changes_verdict = true, \
			.help = "Compare" what \
					" in spite of these differences, which would otherwise refuse or fail the comparison. " \
					"Separate words by commas; man vernier explains them in its section on compare. Default: none." \
	}

/* Checks these options, also together with --floor (has_floor). Returns 0, or 2 after an error
 * message. */
int vn_options_check_comparing(const char *command, vn_comparing *k, bool has_floor);
