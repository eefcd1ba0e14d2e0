/* weights_names.c: see weights_names.h. The names are those of the families (libref/family). */
#include "compare/weights/weights_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of these words that occurs in the name after the layer counts. */
static const struct {
	const char *word;
	int         part;
} fused[] = { { "qkv_proj.", VN_PART_QKV }, { "gate_up_proj.", VN_PART_GATE_UP } };

static const struct {
	int        a, b;
	vn_mistake weight, bias;
} exchanges[] = {
	{ VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ, VN_MISTAKE_W4, VN_MISTAKE_W4 },
	{ VN_POINT_K_PROJ, VN_POINT_V_PROJ, VN_MISTAKE_W4, VN_MISTAKE_W8 },
	{ VN_POINT_Q_NORM, VN_POINT_K_NORM, VN_MISTAKE_N11, VN_MISTAKE_N11 },
	{ VN_POINT_ATTN_NORM, VN_POINT_MLP_NORM, VN_MISTAKE_N12, VN_MISTAKE_N12 },
	{ VN_POINT_GDN_B, VN_POINT_GDN_A, VN_MISTAKE_G3, VN_MISTAKE_G3 },
	{ VN_POINT_EMBED, VN_POINT_LOGITS, VN_MISTAKE_W10, VN_MISTAKE_W10 },
};

/* The rest of the name after ".layers.12." or ".h.12.", which may also start the name. */
static const char *behind_layer(const char *name, int *layer)
{
	static const char *const words[] = { "layers.", "h.", "blk." };
	for (const char *p = name; *p; p = strchr(p, '.') ? strchr(p, '.') + 1 : p + strlen(p))
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
			const size_t n = strlen(words[i]);
			if (strncmp(p, words[i], n) != 0 || !isdigit((unsigned char)p[n]))
				continue;
			char      *end;
			const long l = strtol(p + n, &end, 10);
			if (*end == '.' && l <= INT_MAX) {
				*layer = (int)l;
				return end + 1;
			}
		}
	return NULL;
}

/* Does a name contain these words, between dots? */
static bool has_words(const char *name, const char *words)
{
	const size_t n = strlen(words);
	for (const char *p = strstr(name, words); p; p = strstr(p + 1, words))
		if ((p == name || p[-1] == '.') && (p[n] == '.' || !p[n]))
			return true;
	return false;
}

/* The weight of a family with this name; loose: with the last word of its name. */
static const vn_family_weight *find_weight(const vn_family *f, const char *tail, bool loose)
{
	for (const vn_family_weight *w = f->weights; w->hf; w++) {
		const char *last = strrchr(w->hf, '.');
		if (has_words(tail, loose && last ? last + 1 : w->hf))
			return w;
	}
	return NULL;
}

vn_weight_name vn_weight_name_of(const vn_weight_side *side, const char *name)
{
	const vn_family        *family = side ? side->family : NULL;
	vn_weight_name          x = { .part = VN_PART_OTHER, .layer = -1 };
	const char             *tail = behind_layer(name, &x.layer);
	const vn_family_weight *w = NULL;
	const size_t            n = strlen(name);

	/* the layer of a prediction head follows those of the model */
	if (strncmp(name, VN_MTP_LAYERS, strlen(VN_MTP_LAYERS)) == 0)
		x.layer = side && side->plan ? vn_plan_last_layer(side->plan) + 1 : -1;

	x.tail = tail && x.layer >= 0 ? tail : name;
	x.bias = n > 5 && strcmp(name + n - 5, ".bias") == 0;
	for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
		if (strstr(x.tail, fused[i].word)) {
			x.part = fused[i].part;
			return x;
		}
	for (int loose = 0; !w && loose < 2; loose++) {
		w = family ? find_weight(family, x.tail, loose) : NULL;
		for (int i = 0; !w && !family && vn_family_at(i); i++)
			w = find_weight(vn_family_at(i), x.tail, loose);
	}
	if (!w)
		return x;
	x.change = w->change;
	const vn_point made = w->point == VN_POINT_QG_PROJ       ? VN_POINT_Q_PROJ
	                      : w->point == VN_POINT_TOKEN_EMBED ? VN_POINT_EMBED
	                                                         : w->point;
	x.part = (int)made;
	return x;
}

bool vn_weight_part_is_norm(int part)
{
	const char  *name = part < VN_N_POINTS ? vn_point_get((vn_point)part)->name : "";
	const size_t n = strlen(name);
	return n > 5 && strcmp(name + n - 5, "_norm") == 0; /* point.def: outputs of norms end so */
}

vn_mistake vn_weight_exchange(const vn_weight_name *x, const vn_weight_name *y)
{
	const int a = x->part, b = y->part;
	for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges && x->bias == y->bias; i++)
		if ((exchanges[i].a == a && exchanges[i].b == b) || (exchanges[i].a == b && exchanges[i].b == a))
			return x->bias ? exchanges[i].bias : exchanges[i].weight;
	return VN_NO_MISTAKE;
}

static int compare_name(const void *name, const void *row)
{
	const vn_weight_row *r = row;
	return strcmp(name, r->name);
}

static const vn_weight_row *find_row(const vn_weight_row *rows, int n, const char *name)
{
	return n > 0 ? bsearch(name, rows, (size_t)n, sizeof *rows, compare_name) : NULL;
}

/* The weight of an expert under the name of another spelling, its own tensor in both. */
static const vn_weight_row *find_respelled(const vn_weight_row *rows, int n, const char *name)
{
	const vn_weight_row *found = NULL;
	int                  layer;
	const char          *tail = behind_layer(name, &layer);
	char                 other[1024];
	long                 expert;

	for (int f = 0; tail && !found && vn_family_at(f); f++)
		for (const vn_spelling *s = vn_family_at(f)->naming->spellings; s && s->name && !found; s++) {
			const size_t before = (size_t)(tail - name), room = sizeof other - before;
			if (s->parts || before >= sizeof other / 2)
				continue;
			memcpy(other, name, before);
			if (vn_respell(s->name, s->file, tail, other + before, room, &expert) ||
			    vn_respell(s->file, s->name, tail, other + before, room, &expert))
				found = find_row(rows, n, other);
		}
	return found;
}

const vn_weight_row *vn_weight_twin(const vn_weight_row *rows, int n, const char *name)
{
	const vn_weight_row *found = find_row(rows, n, name);
	char                 other[1024]; /* longer names are known by themselves alone */
	size_t               own = 0;     /* the longest prefix of the name */

	/* The prefixes that publishers use for the same trunk, of all families. */
	for (int f = 0; !found && vn_family_at(f); f++)
		for (const char *const *p = vn_family_at(f)->naming->prefixes; *p; p++)
			if (strlen(*p) > own && strncmp(name, *p, strlen(*p)) == 0)
				own = strlen(*p);
	for (int f = 0; !found && vn_family_at(f); f++)
		for (const char *const *p = vn_family_at(f)->naming->prefixes; *p && !found; p++)
			if (snprintf(other, sizeof other, "%s%s", *p, name + own) < (int)sizeof other)
				found = find_row(rows, n, other);
	return found ? found : find_respelled(rows, n, name);
}

const vn_weight_row *vn_weight_beside(const vn_weight_side *side, const vn_weight_row *row, const vn_weight_name *name,
                                      int part)
{
	const size_t trunk = (size_t)(name->tail - row->name);
	for (int i = 0; i < side->n; i++) {
		const vn_weight_name x = vn_weight_name_of(side, side->row[i].name);
		if (x.part == part && x.layer == name->layer && x.bias == name->bias &&
		    (size_t)(x.tail - side->row[i].name) == trunk && strncmp(side->row[i].name, row->name, trunk) == 0)
			return &side->row[i];
	}
	return NULL;
}
