/* folder.h: a folder for the files of a suite, one per program, under /tmp.
 *
 * make_folder() creates it and writes its name over the template `folder`; remove_folder() deletes
 * it with its files; at() is the path of a file in it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/vernier-trial-XXXXXX";

static inline bool make_folder(void)
{
	return mkdtemp(folder) != NULL;
}

static inline bool remove_folder(void)
{
	char command[PATH_MAX];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) == 0;
}

/* The path of a file in the folder; valid for the next three calls. */
static inline const char *at(const char *name)
{
	static char path[4][PATH_MAX];
	static int  turn;
	char       *p = path[turn++ % 4];
	snprintf(p, PATH_MAX, "%s/%s", folder, name);
	return p;
}
