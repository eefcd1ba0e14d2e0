/* options.h: what the command lines of this room have in common.
 *
 * command is the subcommand's name, for complaints; values are borrowed from argv.
 * A complaint states the rule and quotes the offender, goes to stderr, and is
 * exit status 2: every reader returns 0, or that.
 */
#ifndef VN_COMPARE_OPTIONS_H
#define VN_COMPARE_OPTIONS_H

#include "compare/comparison/comparison.h"

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

/* option ("--floor", for the complaint) is given once: value goes to *to, which was NULL. */
int vn_option_once(const char *command, const char *option, const char *value, const char **to);
/* option is given at most `most` times: value goes behind the *n of list. */
int vn_option_more(const char *command, const char *option, const char *value, const char **list, int *n, int most);
int vn_option_threads(const char *command, const char *value, int *threads);
/* --allow WORDS: adds them to the unsigned at the option's place. */
vn_option_taker vn_take_allow;
/* getopt's ':' and '?', for a short-option string that begins with ':' or "-:". */
int vn_option_wrong(const char *command, int c, char *const *argv);

/* The one argument behind the options. */
int vn_option_model(const char *command, int argc, char *const *argv, const char **model);

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
	vn_policy   policy;
	const char *point[VN_MAX_POINTS];
} vn_comparing;

enum { VN_OPTION_MODEL = 512, VN_OPTION_PRECISION, VN_OPTION_POINTS, VN_OPTION_ALLOW, VN_OPTION_THREADS, VN_OPTION_REPLAY, VN_OPTION_EXPLAIN, VN_OPTION_STRICT };

/* Rows of getopt_long's table. */
#define VN_COMPARING_OPTIONS \
	{ "model", required_argument, NULL, VN_OPTION_MODEL }, \
	{ "floor-precision", required_argument, NULL, VN_OPTION_PRECISION }, \
	{ "points", required_argument, NULL, VN_OPTION_POINTS }, \
	{ "allow", required_argument, NULL, VN_OPTION_ALLOW }, \
	{ "replay", no_argument, NULL, VN_OPTION_REPLAY }, \
	{ "explain", no_argument, NULL, VN_OPTION_EXPLAIN }, \
	{ "strict", no_argument, NULL, VN_OPTION_STRICT }, \
	{ "threads", required_argument, NULL, VN_OPTION_THREADS }

/* One of them, c as getopt_long gave it; anything else is vn_option_wrong's. */
int vn_option_comparing(const char *command, int c, const char *value, char *const *argv, vn_comparing *k);
/* What --model, --floor-precision and --floor (has_floor) say together. */
int vn_check_floor(const char *command, const vn_comparing *k, bool has_floor);

#endif
