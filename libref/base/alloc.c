/* alloc.c: see alloc.h. */
#include "libref/base/alloc.h"

#include "libref/base/grow.h"
#include "libref/base/temporary.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *vn_alloc_check(const void *p)
{
	static const char line[] = "vernier: memory ran out\n";

	if (p)
		return (void *)(uintptr_t)p;
	if (write(STDERR_FILENO, line, sizeof line - 1) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

void *vn_alloc(size_t n, size_t size)
{
	return vn_alloc_resized(NULL, n, size);
}

void *vn_alloc_zero(size_t n, size_t size)
{
	return vn_alloc_check(calloc(n ? n : 1, size));
}

void *vn_alloc_resized(void *list, size_t n, size_t size)
{
	size_t bytes;

	return vn_alloc_check(__builtin_mul_overflow(n ? n : 1, size, &bytes) ? NULL : realloc(list, bytes));
}

void *vn_alloc_grown(void *list, size_t n, size_t size)
{
	return vn_alloc_check(vn_grown(list, n, size));
}

FILE *vn_alloc_stream(vn_text_stream *s)
{
	return s->file = vn_alloc_check(open_memstream(&s->text, &s->bytes));
}

char *vn_alloc_streamed(vn_text_stream *s)
{
	const bool lost = ferror(s->file);

	return vn_alloc_check(fclose(s->file) != 0 || lost ? NULL : s->text);
}

char *vn_alloc_text(const char *text)
{
	return vn_alloc_check(strdup(text));
}
