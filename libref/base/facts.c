/* facts.c: see facts.h. */
#include "libref/base/facts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int find_key(const vn_facts *f, const char *key)
{
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->fact[i].key, key) == 0)
			return i;
	return -1;
}

void vn_facts_set(vn_facts *f, const char *key, const char *format, ...)
{
	int i = find_key(f, key);
	if (i < 0) {
		assert(f->n < VN_FACTS_MAX);
		if (f->n == VN_FACTS_MAX)
			return;
		i = f->n++;
		snprintf(f->fact[i].key, VN_FACT_KEY, "%s", key);
	}
	va_list args;
	va_start(args, format);
	vsnprintf(f->fact[i].value, VN_FACT_VALUE, format, args);
	va_end(args);
}

const char *vn_facts_get(const vn_facts *f, const char *key)
{
	int i = find_key(f, key);
	return i < 0 ? NULL : f->fact[i].value;
}
