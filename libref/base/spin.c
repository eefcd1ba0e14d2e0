/* spin.c: see spin.h. */
#include "libref/base/spin.h"

#include <stdlib.h>
#include <unistd.h>

/* Sets a variable that was not set; returns 1 if it did. */
static int set_variable(const char *name, const char *value)
{
	return !getenv(name) && setenv(name, value, 1) == 0;
}

void vn_spin_briefly(char **argv)
{
	if (!getenv("OMP_WAIT_POLICY") && (set_variable("GOMP_SPINCOUNT", "2000") | set_variable("KMP_BLOCKTIME", "0")))
		execv("/proc/self/exe", argv); /* returns only on failure: then we are slower, not wrong */
}
