/* json.c: see json.h. */
#include "libref/base/json.h"

#include "libref/base/trouble.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local bool lost;

void vn_json_lose(void)
{
	lost = true;
	vn_trouble_note(NULL);
}

bool vn_json_lost(void)
{
	const bool was = lost;
	lost = false;
	return was;
}

static void *allocate(size_t n)
{
	void *p = malloc(n);
	if (!p)
		vn_json_lose();
	return p;
}

/* Before main: Jansson wants to know it before it is first called. */
__attribute__((constructor)) static void watch(void)
{
	json_set_alloc_funcs(allocate, free);
}

static void say_why(json_error_t *why)
{
	if (why) {
		*why = (json_error_t) { .line = -1, .column = -1 };
		strcpy(why->text, "not enough memory");
	}
}

json_t *vn_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why)
{
	const bool before = vn_json_lost();
	json_t    *j = json_loadb(text, bytes, flags, why);

	if (vn_json_lost()) {
		json_decref(j);
		j = NULL;
		say_why(why);
	}
	lost = before;
	return j;
}

json_t *vn_json_parse(const char *text, size_t flags)
{
	return text ? vn_json_load(text, strlen(text), flags, NULL) : NULL;
}

char *vn_json_dump(const json_t *j, size_t flags)
{
	char *text = j ? json_dumps(j, flags) : NULL;

	if (vn_json_lost()) {
		free(text);
		text = NULL;
	}
	return text;
}

bool vn_json_print(const json_t *j, FILE *out, size_t flags)
{
	/* Nothing of what is broken already. */
	bool good = j && !lost && json_dumpf(j, out, flags) == 0;
	return !vn_json_lost() && good;
}
