/* output.h: writes a report to stdout or to a file, or the numbers of a tensor to a file.
 *
 * A file is written under a temporary name in the same folder and renamed when it is complete, so
 * that no reader sees half a report.
 */
#pragma once

#include "capture/file/place.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct vn_output {
	FILE         *file;
	const char   *path; /* NULL: stdout */
	char          temporary[PATH_MAX];
	vn_place_kind kind;
	bool          force;
	unsigned      mark; /* vn_trouble_mark at the time of opening */
} vn_output;

/* Opens the output: a stream that escapes what is unprintable (printed.h), for VN_PLACE_NUMBERS a
 * plain one. path NULL: stdout. An existing file is refused unless force; anything else that
 * exists (a directory, a link, a device, a file of another kind) is always refused (place.h). */
vn_status vn_output_open(vn_output *o, const char *path, vn_place_kind kind, bool force, vn_error *err);
/* Closes an opened output, whose writing ended with st. Renames the file into place if that is
 * VN_OK and no write failed in the meantime (libref/base/trouble.h); else removes it. Returns st,
 * or why the file is not complete. */
vn_status vn_output_close(vn_output *o, vn_status st, vn_error *err);

/* Closes a stream from open_memstream. Returns false if the text is incomplete: *text is then NULL,
 * and that is recorded (trouble.h). fclose alone does not detect this. to may be NULL: false. */
bool vn_text_close(FILE *to, char **text);

/* Finds the form that the ending of a path asks for. known: endings without the dot,
 * "json|md|html"; case is ignored, .htm is .html, and .markdown is .md. *which: its place in known;
 * -1: text, for a path without an ending, .txt, .text, .log, .out, or NULL. VN_ERR_USAGE for any
 * other ending. */
vn_status vn_output_ending(const char *path, const char *known, int *which, vn_error *err);
