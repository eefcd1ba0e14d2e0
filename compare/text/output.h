/* output.h: a report that goes to stdout or to a file.
 *
 * A file is written beside its place under another name and moved there when
 * it is whole, so that nobody ever reads half a report.
 */
#ifndef VN_COMPARE_OUTPUT_H
#define VN_COMPARE_OUTPUT_H

#include "libref/base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct vn_output {
	FILE       *file;
	const char *path; /* NULL: stdout */
	char        temporary[PATH_MAX];
	bool        force;
	unsigned    mark; /* vn_trouble_mark, when it was opened */
} vn_output;

/* path NULL: stdout. An existing file is refused unless force; anything else that
 * is there (a directory, a link, a device, what is not text) is refused always. */
vn_status vn_output_open(vn_output *o, const char *path, bool force, vn_error *err);
/* Are these one file? b may be NULL: no. A report never replaces what it speaks of. */
bool      vn_same_file(const char *a, const char *b);
/* Move into place when good and the machine refused nothing meanwhile (libref/base/trouble.h), else remove. Safe on
 * a zeroed one. */
vn_status vn_output_close(vn_output *o, bool good, vn_error *err);

/* Ends what open_memstream began. False: it is not whole, *text is NULL, and that is noted (trouble.h). fclose alone
 * does not tell. to may be NULL: false. */
bool vn_text_close(FILE *to, char **text);

/* A whole report, to path or stdout, by that function. */
typedef vn_status vn_output_writer(const void *context, FILE *out, vn_error *err);
vn_status vn_output_report(const char *path, bool force, vn_output_writer *write, const void *context, vn_error *err);

#endif
