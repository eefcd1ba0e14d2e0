/* spin.c: see spin.h. */
#include "libref/base/spin.h"

#include "libref/base/system.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* Sets a variable that was not set; returns 1 if it did. */
static int set_variable(const char *name, const char *value)
{
	return !getenv(name) && setenv(name, value, 1) == 0;
}

void vn_spin_briefly(char **argv)
{
	char    path[PATH_MAX];
	ssize_t n;

	if (!getenv("OMP_WAIT_POLICY") && (set_variable("GOMP_SPINCOUNT", "2000") | set_variable("KMP_BLOCKTIME", "0")))
		if ((n = vn_program_path(path, sizeof path - 1)) > 0) {
			path[n] = '\0';
			execv(path, argv); /* returns only on failure: then we are slower, not wrong */
		}
}
