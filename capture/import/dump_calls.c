/* dump_calls.c: the call in the names of a dump, as people write it: "q_0_step3", "decode_2/q_0",
 * "prefill/q_0"; see dump.h. */
#include "capture/import/dump.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A call in a name. */
typedef struct call_name {
	int64_t     call; /* -1: none */
	bool        decode;
	const char *from, *to; /* the name without it */
	vn_array   *array;
} call_name;

/* Parses all of text [at, end) as a call: "step3", "step_0003", "decode-2", "prefill". */
static bool read_call(const char *at, const char *end, call_name *c)
{
	static const char *const words[] = { "step", "decode", "prefill" };
	for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
		const size_t n = strlen(words[k]);
		if ((size_t)(end - at) < n || strncasecmp(at, words[k], n) != 0)
			continue;
		const char *number = at + n + (at + n < end && strchr("._-", at[n]));
		c->decode = k == 1;
		c->call = 0;
		if (k == 2)
			return at + n == end;
		return isdigit((unsigned char)*number) && vn_text_digits(number, &c->call) == end && c->call < 99999;
	}
	return false;
}

/* Looks at the first folder of a name, and at its last words. */
static call_name call_of(vn_array *a)
{
	call_name   c = { .array = a, .from = a->name, .to = a->name + strlen(a->name) };
	const char *first = a->name + strcspn(a->name, "/.");
	/* "step.3.q": the number of a folder has a dot before it */
	for (int dots = 0; dots < 2 && *first; dots++, first += 1 + strcspn(first + 1, "/."))
		if (first[1] && read_call(a->name, first, &c)) {
			c.from = first + 1;
			return c;
		}
	for (const char *p = a->name + 1; *p; p++)
		if (strchr("._-/", p[-1]) && p - 1 > a->name && read_call(p, c.to, &c)) {
			c.to = p - 1;
			return c;
		}
	c.call = -1;
	return c;
}

VN_ORDER_BY(by_call, call_name, VN_ORDER(x->call, y->call))

/* The names must say it everywhere, and the numbers have no gap. */
void vn_dump_calls(vn_dump *d)
{
	VN_FREED call_name *list = vn_alloc((size_t)d->n, sizeof *list);
	bool                prefill = false, decode = false;
	for (int i = 0; i < d->n; i++) {
		list[i] = call_of(&d->array[i]);
		if (list[i].call < 0 || d->array[i].step)
			return;
		decode = decode || list[i].decode;
		prefill = prefill || !list[i].decode;
	}
	for (int i = 0; i < d->n && prefill && decode; i++)
		list[i].call += list[i].decode; /* of prefill, decode0, decode1... or of prefill, decode1... */
	qsort(list, (size_t)d->n, sizeof *list, by_call);
	int n = 0;
	for (int i = 0; i < d->n; i++) {
		const bool more = i && list[i].call != list[i - 1].call;
		if (more && list[i].call != list[i - 1].call + 1 && !(n == 0 && prefill && decode && list[i].call == 2))
			return;
		n += more;
	}
	for (int i = 0, call = 0; n && i < d->n; i++) {
		call += i && list[i].call != list[i - 1].call;
		const size_t length = (size_t)(list[i].to - list[i].from);
		list[i].array->step = call;
		memmove(list[i].array->name, list[i].from, length);
		list[i].array->name[length] = '\0';
	}
}
