/* places.c: see places.h. */
#include "compare/text/places.h"

#include "libref/base/grow.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 4096 };

static size_t digits_at(const char *p)
{
	size_t n = 0;
	while (isdigit((unsigned char)p[n]))
		n++;
	return n;
}

char *vn_place_of(const char *name, char text[VN_NAME_MAX])
{
	char *to = text, *const end = text + VN_NAME_MAX - 1;

	for (const char *p = name; *p && to < end;) {
		const size_t call = *p == '@' ? digits_at(p + 1) : 0;
		const bool   start = p == name || p[-1] == '.', layer = p == name + 5 && strncmp(name, "layer", 5) == 0;
		const size_t n = start || layer ? digits_at(p) : 0;
		if (call) {
			p += 1 + call;
		} else if (n && p[n] == '.') { /* a number at the end counts calls of a function, or is a module */
			*to++ = '*';
			p += n;
		} else {
			*to++ = *p++;
		}
	}
	*to = '\0';
	return text;
}

void vn_places_add(vn_name_places *p, const char *name)
{
	char text[VN_NAME_MAX];

	vn_place_of(name, text);
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->of[i].place, text) == 0) {
			p->of[i].times++;
			return;
		}
	vn_name_place *more = p->n < MOST_PLACES ? vn_grown(p->of, (size_t)p->n, sizeof *more) : NULL;
	if (!more)
		return;
	p->of = more;
	more[p->n] = (vn_name_place) { .first = name, .times = 1 };
	memcpy(more[p->n++].place, text, sizeof text);
}

char *vn_places_say(const vn_name_places *p, int most, char *text, size_t room)
{
	int more = 0;

	*text = '\0';
	for (int i = 0; i < p->n; i++) {
		const vn_name_place *x = &p->of[i];
		if (i >= most)
			more += x->times;
		else if (x->times > 1)
			vn_text_add(text, room, "%s%s (%d)", i ? ", " : "", x->place, x->times);
		else
			vn_text_add(text, room, "%s%s", i ? ", " : "", x->first);
	}
	if (more)
		vn_text_add(text, room, " and %d more", more);
	return text;
}

void vn_places_free(vn_name_places *p)
{
	free(p->of);
	*p = (vn_name_places) { 0 };
}
