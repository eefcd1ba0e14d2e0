/* option_rows.h: the rows that the option tables of several commands have in common
 * (libref/base/options.h).
 *
 * type, field: the command's struct, and its member that receives the value.
 */
#ifndef VN_CAPTURE_OPTION_ROWS_H
#define VN_CAPTURE_OPTION_ROWS_H

#include "libref/base/options.h"

/* The table of a vn_command. */
#define VN_OPTION_TABLE(rows) .option = (rows), .n = sizeof(rows) / sizeof *(rows)

#define VN_THREADS_OPTION(type, field) \
	{ \
		"threads", 0, VN_INTO(type, field), VN_RANGE(1, 1024), \
			.argument = "N", \
			.help = "Use at most N threads, 1 to 1024. The numbers do not depend on it. " \
					"Default: one thread per processor." \
	}
#define VN_DEVICE_OPTION(type, field) \
	{ \
		"device", 0, VN_INTO(type, field), VN_RANGE(0, 255), \
			.argument = "N", .help = "GPU number, as listed by vernier devices. Default: the best suitable device." \
	}
/* --ids and --ids-from of a command that runs a model. source: a vn_prompt_source. */
#define VN_IDS_OPTIONS(type, source) \
	{ "ids", 0, VN_INTO(type, source.list), .argument = "LIST|@FILE", \
	  .help = "Run these token ids: 1,2,3 or [1,2,3]. @FILE: those in a file or pipe, as such a list or in JSON." }, \
	{ \
		"ids-from", 0, VN_INTO(type, source.recording), \
			.argument = "REC", .help = "Run the token ids of the prompt of the recording REC." \
	}
/* --force of a command that writes a recording to FILE */
#define VN_RECORDING_FORCE(type, field) \
	{ \
		"force", 0, VN_INTO(type, field), .help = "Replace FILE if it is a recording. Other files are never replaced." \
	}
#define VN_STRICT_OPTION(type, field, what) \
	{ \
		"strict", 0, VN_INTO(type, field), .help = "Treat every warning as a failure: exit status 1" what "." \
	}

#endif
