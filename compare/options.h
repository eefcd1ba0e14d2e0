/* options.h: what the command lines of this room have in common.
 *
 * command is the subcommand's name, for complaints (vn_complain), which are exit status 2.
 * Values are borrowed from argv.
 */
#ifndef VN_COMPARE_OPTIONS_H
#define VN_COMPARE_OPTIONS_H

#include "compare/comparison/comparison.h"

#include "capture/run/prompt.h"
#include "compare/text/shell.h"
#include "libref/base/options.h"

#include <getopt.h>

enum { VN_MAX_POINTS = 64 };

/* Rows that several commands have; field: where the value goes in the command's struct `type`. */
#define VN_THREADS_OPTION(type, field) \
	{ "threads", 0, VN_INTO(type, field), VN_RANGE(1, 1024), .argument = "N", \
	  .help = "Use at most N threads, 1 to 1024. The numbers do not depend on it. Default: one thread per processor." }
#define VN_FORMAT_OPTION(type, field, about_json) \
	{ "format", 0, VN_CHOOSE(type, field), .argument = "text|json", .help = "Form of the report. Default: text." about_json }
#define VN_STRICT_OPTION(type, field, what) \
	{ "strict", 0, VN_INTO(type, field), .help = "Treat every warning as a failure: exit status 1" what "." }

/* --allow WORDS: adds them to the unsigned at the option's place. */
vn_option_taker vn_take_allow;
/* The one argument behind the options. */
int vn_option_model(const char *command, int argc, char *const *argv, const char **model);

/* The options that say these tokens, with a space before each: " --ids-from ref.h5"; "" where they do not fit a line. */
void vn_say_source(const vn_prompt_source *from, char line[VN_SHELL_LINE]);
/* The precision that option --NAME gives. 0, or 2 with a complaint. */
int vn_option_policy(const char *command, const char *name, const char *word, vn_policy *policy);

/* Of a command with one report: text or json, to stdout or -o PATH. */
typedef struct vn_reporting {
	const char *path;
	int         format; /* -1: not given */
	bool        json, force, strict;
} vn_reporting;

enum { VN_FORM_UNSAID = -1, VN_FORM_TEXT, VN_FORM_JSON };

#define VN_REPORTING_OPTIONS(type, report) \
	{ "format", 0, VN_CHOOSE(type, report.format), .argument = "text|json", .help = "Form of the report. Default: text, or JSON if PATH ends in .json." }, \
	{ "output", 'o', VN_INTO(type, report.path), .argument = "PATH", .help = "Write the report to PATH. Default: stdout." }

/* json, from what was given. */
void vn_reporting_choose(vn_reporting *k);

/* The options of whatever compares: how, not what. Must stay where it is while o is in use. */
typedef struct vn_comparing {
	vn_compare_options o;
	const char *precision; /* --floor-precision, as given; NULL */
	vn_policy   policy;
	const char *point[VN_MAX_POINTS];
} vn_comparing;

#define VN_FLOOR_PRECISION_OPTION(type, how) \
	{ "floor-precision", 0, VN_INTO(type, how.precision), .argument = "P", .words = &vn_policy_names, \
	  .help = "The precision of the floor. Default: CAND's precision." }
#define VN_POINTS_OPTION(type, how) \
	{ "points", 0, VN_COLLECT(type, how.point, how.o.n_points), .argument = "GLOB", \
	  .help = "Compare only these checkpoints, on both sides. A GLOB that matches nothing is trouble. Default: all." }
#define VN_ALLOW_OPTION(type, how) \
	{ "allow", 0, .kind = VN_TAKE_EACH, .take = vn_take_allow, .at = offsetof(type, how.o.allow), .argument = "WORDS", .words = &vn_allow_names, \
	  .help = "Compare in spite of these differences, which would otherwise refuse or fail the comparison. Separate words by commas. Default: none." }

/* What these options say, and together with --floor (has_floor). 0, or 2 with a complaint. */
int vn_check_comparing(const char *command, vn_comparing *k, bool has_floor);

#endif
