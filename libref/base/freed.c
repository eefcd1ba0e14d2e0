/* freed.c: see freed.h. */
#include "libref/base/freed.h"

#include <stdlib.h>
#include <string.h>

void vn_free_at(const void *variable)
{
	void *p;
	memcpy(&p, variable, sizeof p); /* a pointer of any type */
	free(p);
}

void vn_free_each(size_t n, void *const *p)
{
	for (size_t i = 0; i < n; i++)
		free(p[i]);
}
