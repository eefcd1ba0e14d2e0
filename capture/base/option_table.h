/* option_table.h: the options of a command as a table: from it come both what --help prints and what is read.
 *
 * Values are borrowed from argv. A complaint states the rule and quotes the offender.
 */
#ifndef VN_CAPTURE_OPTION_TABLE_H
#define VN_CAPTURE_OPTION_TABLE_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct vn_option {
	enum { VN_ONCE, VN_MANY } often; /* VN_MANY: may be given more than once */
	const char *name;  /* without the dashes, behind its letter where it has one: "o,output"; "help" ends the reading */
	const char *value; /* what stands for its value in --help; NULL: it takes none */
	const char *means;
} vn_option;

enum { VN_MOST_OPTIONS = 40 };

/* A line for each. */
void vn_options_usage(const vn_option *table, int n, FILE *to);

/* One option, by its place in the table; value is NULL where it takes none. */
typedef vn_status vn_option_taker(void *context, int option, const char *value, vn_error *err);

/* All options of argv, each by `take`, up to the first that is refused; what is left of argv begins at optind. *help: --help was
 * asked for, and nothing behind it is read. VN_ERR_USAGE: an option that is unknown, wants a value, or is given twice, and
 * whatever take says. */
vn_status vn_options_read(const vn_option *table, int n, int argc, char **argv, vn_option_taker *take, void *context, bool *help, vn_error *err);

#endif
