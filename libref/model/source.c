/* source.c: see source.h. */
#include "libref/model/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const vn_source_tensor *vn_source_find(const vn_source *s, const char *name)
{
	const vn_source_tensor key = { .name = name };
	return s->n ? bsearch(&key, s->tensor, s->n, sizeof *s->tensor, vn_source_by_name) : NULL;
}

void vn_source_warn(vn_source *s, const char *format, ...)
{
	va_list args;
	if (s->n_warnings == VN_SOURCE_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(s->warning[s->n_warnings++], VN_SOURCE_WARNING, format, args);
	va_end(args);
}

void vn_source_close(vn_source *s)
{
	if (!s)
		return;
	if (s->release)
		s->release(s->files);
	VN_FREE(s->tensor, s->config, s->config_path, s);
}
