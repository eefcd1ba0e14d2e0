/* alloc.c: see alloc.h. */
#include "libref/base/alloc.h"

#include "libref/base/grow.h"
#include "libref/base/temporary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *check(void *p)
{
	static const char line[] = "vernier: memory ran out\n";

	if (p)
		return p;
	if (write(STDERR_FILENO, line, sizeof line - 1) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

void *vn_alloc(size_t n, size_t size)
{
	size_t bytes;

	return check(__builtin_mul_overflow(n ? n : 1, size, &bytes) ? NULL : malloc(bytes));
}

void *vn_alloc_zero(size_t n, size_t size)
{
	return check(calloc(n ? n : 1, size));
}

void *vn_alloc_grown(void *list, size_t n, size_t size)
{
	return check(vn_grown(list, n, size));
}

char *vn_alloc_text(const char *text)
{
	return check(strdup(text));
}
