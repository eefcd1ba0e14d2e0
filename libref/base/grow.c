/* grow.c: see grow.h. */
#include "libref/base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ELEMENTS = 64 };

void *vn_grown(void *list, size_t n, size_t size)
{
	if (list && (n < FIRST_ELEMENTS || (n & (n - 1)) != 0))
		return list;
	const size_t room = n < FIRST_ELEMENTS ? FIRST_ELEMENTS : 2 * n;
	return room <= SIZE_MAX / size ? realloc(list, room * size) : NULL;
}

bool vn_grow(void *list, size_t n, size_t size)
{
	void *old;

	memcpy(&old, list, sizeof old);
	void *more = vn_grown(old, n, size);
	if (more)
		memcpy(list, &more, sizeof more);
	return more != NULL;
}
