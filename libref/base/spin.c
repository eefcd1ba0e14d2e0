/* spin.c: see spin.h. */
#include "libref/base/spin.h"

#include <stdlib.h>
#include <unistd.h>

/* 1 when it was not set and now is. */
static int set(const char *name, const char *value)
{
	return !getenv(name) && setenv(name, value, 1) == 0;
}

void vn_spin_briefly(char **argv)
{
	if (!getenv("OMP_WAIT_POLICY") && (set("GOMP_SPINCOUNT", "2000") | set("KMP_BLOCKTIME", "0")))
		execv("/proc/self/exe", argv); /* comes back only on failure: then we are slow, not wrong */
}
