/* reporting.h: the options of a command with one report: text or JSON, to stdout or to -o PATH. */
#pragma once

#include "libref/base/options.h"

typedef struct vn_reporting {
	const char *path;
	int         format; /* VN_FORM_UNSAID: not given */
	bool        json, force, strict;
} vn_reporting;

enum { VN_FORM_UNSAID = -1, VN_FORM_TEXT, VN_FORM_JSON };

/* Rows of an option table. report: the member of the command's struct `type`; about_json: a
 * sentence, or "". */
#define VN_REPORTING_OPTIONS(type, report, about_json) \
	{ "format", \
	  0, \
	  VN_CHOOSE(type, report.format), \
	  .argument = "text|json", \
	  .set_without = "output|values", \
	  .help = "Form of the report. Default: text, or JSON if PATH ends in .json." about_json }, \
		{ "output", 'o', VN_INTO(type, report.path), .argument = "PATH", \
		  .help = "Write the report to PATH. Default: stdout." }, \
		VN_NO_CONFIG_OPTION
/* what: "report" */
#define VN_REPORTING_FORCE(type, field, what) \
	{ \
		"force", 0, VN_INTO(type, field), .help = "Replace an older " what ". Other files are never replaced." \
	}

/* Sets json from format and path. Returns 0, or 2 after an error message. */
int vn_reporting_choose(const char *command, vn_reporting *k);
