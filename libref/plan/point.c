/* point.c: see point.h. */
#include "libref/plan/point.h"

#include "libref/base/glob.h"
#include "libref/base/nearest.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

#define BEFORE VN_BEFORE_LAYERS
#define LAYER  VN_INSIDE_LAYER
#define BEHIND VN_BEHIND_LAYERS
#define SHOWS  VN_FORMAT_SHOWS
#define MAY    VN_FORMAT_MAY
#define HIDES  VN_FORMAT_HIDES
static const vn_point_info table[VN_N_POINTS] = {
#define POINT(NAME, name, axes, basis, place, format, means) { name, axes, basis, means, place, format },
#include "libref/plan/point.def"
};

const vn_point_info *vn_point_get(vn_point p)
{
	return &table[p];
}

int vn_point_from_name(const char *name, vn_point *p)
{
	for (int i = 0; i < VN_N_POINTS; i++)
		/* imports ask ten times for each of a million names: most end at the first letter */
		if (table[i].name[0] == name[0] && strcmp(table[i].name, name) == 0) {
			*p = (vn_point)i;
			return 1;
		}
	return 0;
}

const char *vn_axes_word(const char *axes, int i, size_t *n)
{
	axes += strspn(axes, " ");
	for (; i > 0; i--) {
		axes += strcspn(axes, " ");
		axes += strspn(axes, " ");
	}
	*n = strcspn(axes, " ");
	return axes;
}

int vn_axes_find(const char *axes, const char *word)
{
	size_t      n;
	const char *w = vn_axes_word(axes, 0, &n);
	for (int a = 0; n; w = vn_axes_word(axes, ++a, &n))
		if (n == strlen(word) && memcmp(w, word, n) == 0)
			return a;
	return -1;
}

int vn_name_layer(const char *name)
{
	int64_t     layer;
	const char *rest = strncmp(name, "layer", 5) == 0 ? vn_text_digits(name + 5, &layer) : NULL;
	return rest && *rest == '.' && layer >= 0 && layer <= INT32_MAX ? (int)layer : -1;
}

const char *vn_name_in_layer(const char *name)
{
	return vn_name_layer(name) < 0 ? name : strchr(name, '.') + 1;
}

/* Other engines' words for "layer3.", as of a name "model.layers.3.q_rope".
 * Returns false if the name has no layer. */
static bool spell_layer(const char *glob, char to[VN_GLOB_MAX + 8])
{
	static const char *const words[] = { "layers.", "layer.", "blk.", "block.", "blocks.", "h.", "layers" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *at = strstr(glob, words[i]);
		if (!at || (at > glob && at[-1] != '.'))
			continue;
		const char  *number = at + strlen(words[i]);
		const size_t digits = strspn(number, "0123456789*{},");
		if (digits && number[digits] == '.')
			return snprintf(to, VN_GLOB_MAX + 8, "layer%s", number) < VN_GLOB_MAX + 8;
	}
	return false;
}

/* The part of a glob before its first '.', or behind it, spelt as names have it: "layr1.*" is
 * "layer1.*", "*.q_rop" is "*.q_rope". Settles near, if the result matches one of the names. */
static void spell_half(const char *glob, bool front, const char *(*name_of)(const void *context, int i),
                       const void *context, int n, vn_nearest *near)
{
	const char *dot = strchr(glob, '.');
	char        half[VN_GLOB_MAX + 1], whole[2 * VN_NEAREST_MAX];
	vn_nearest  nearest;

	if (!dot || strlen(glob) > VN_GLOB_MAX)
		return;
	snprintf(half, sizeof half, "%.*s", front ? (int)(dot - glob) : (int)VN_GLOB_MAX, front ? glob : dot + 1);
	if (strpbrk(half, "*?{["))
		return;
	vn_nearest_start(&nearest, half);
	for (int i = 0; i < n; i++) {
		char        own[VN_NEAREST_MAX];
		const char *name = name_of(context, i), *at = strchr(name, '.');
		if (!at ||
		    snprintf(own, sizeof own, "%.*s", front ? (int)(at - name) : 200, front ? name : at + 1) >= (int)sizeof own)
			continue;
		vn_nearest_try(&nearest, own);
	}
	if (!vn_nearest_found(&nearest))
		return;
	snprintf(whole, sizeof whole, "%.*s%s", front ? 0 : (int)(dot + 1 - glob), glob, vn_nearest_found(&nearest));
	if (front)
		vn_text_add(whole, sizeof whole, "%s", dot);
	for (int i = 0; i < n && strlen(whole) < VN_NEAREST_MAX; i++)
		if (vn_glob_match(whole, name_of(context, i))) {
			vn_nearest_settle(near, whole);
			return;
		}
}

/* A glob without a layer, or of nothing but a layer: "q_rope", "rope", "layer1". */
static void spell_layers(const char *glob, const char *(*name_of)(const void *context, int i), const void *context,
                         int n, vn_nearest *near)
{
	static const struct {
		const char *before, *after;
	} form[] = { { "layer*.", "" }, { "", ".*" }, { "layer*.*", "*" } };
	char whole[VN_GLOB_MAX + 1];

	for (size_t f = 0; f < sizeof form / sizeof *form; f++)
		if (snprintf(whole, sizeof whole, "%s%s%s", form[f].before, glob, form[f].after) < VN_GLOB_MAX)
			for (int i = 0; i < n; i++)
				if (vn_glob_match(whole, name_of(context, i))) {
					vn_nearest_settle(near, whole);
					return;
				}
	if (snprintf(whole, sizeof whole, "layer*.%s", glob) < VN_GLOB_MAX)
		spell_half(whole, false, name_of, context, n, near);
}

const char *vn_point_hint(const char *glob, const char *(*name_of)(const void *context, int i), const void *context,
                          int n, char text[VN_POINT_HINT])
{
	char       spelt[VN_GLOB_MAX + 8];
	const bool other = strlen(glob) <= VN_GLOB_MAX && spell_layer(glob, spelt);
	const int  asked = vn_name_layer(other ? spelt : glob);
	int        last = -1;
	vn_nearest near;

	vn_nearest_start(&near, glob);
	for (int i = 0; i < n; i++) {
		const char *name = name_of(context, i);
		last = vn_name_layer(name) > last ? vn_name_layer(name) : last;
		if (other && strlen(spelt) < VN_NEAREST_MAX && vn_glob_match(spelt, name)) {
			vn_nearest_settle(&near, spelt);
			break;
		}
		vn_nearest_try(&near, name);
	}
	if (!other && strpbrk(glob, "*?{[")) {
		spell_half(glob, true, name_of, context, n, &near);
		spell_half(glob, false, name_of, context, n, &near);
	}
	if (!strchr(glob, '.') && !vn_nearest_found(&near))
		spell_layers(glob, name_of, context, n, &near);
	if (asked > last && last >= 0)
		snprintf(text, VN_POINT_HINT, " (its layers are 0 to %d)", last);
	else
		snprintf(text, VN_POINT_HINT, "%s", vn_nearest_hint(&near));
	return text;
}
