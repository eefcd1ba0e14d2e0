/* command_table.h: finds and prints rows of the table of the program's commands.
 *
 * main.c has the table. `vernier help` prints its usage, manual pages and completions.
 */
#pragma once

#include "libref/base/options.h"

/* What a command does, from the least to the most. */
typedef enum vn_work {
	VN_WORK_PRINT,        /* prints text, or writes it to files */
	VN_WORK_READ,         /* reads and writes files */
	VN_WORK_RUN_IF_MODEL, /* also runs a model, if --model is given */
	VN_WORK_RUN           /* runs a model */
} vn_work;

typedef struct vn_command_row {
	int (*run)(int argc, char **argv);
	const char       *help; /* what it does, in a few words */
	vn_work           work;
	const vn_command *options; /* and the name */
} vn_command_row;

typedef struct vn_command_table {
	const vn_command_row *command;
	int                   n;
	const char           *engines; /* those that capture runs, "ref|gpu" */
} vn_command_table;

/* Returns the command of that name, or of that option: "--version" and "-v" for version. NULL:
 * none. */
const vn_command_row *vn_command_table_find(const vn_command_table *t, const char *name);
/* Prints on stderr that there is no such command, and which may be meant. Returns 2, the exit
 * status. */
int                   vn_command_table_unknown(const vn_command_table *t, const char *name);
/* Prints the commands, each in a few words, and examples. Commands that are options of the program,
 * too, are named in its last lines only. */
void                  vn_command_table_usage(const vn_command_table *t, FILE *to);
