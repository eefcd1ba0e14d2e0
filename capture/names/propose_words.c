/* propose_words.c: names: families that differ in one number, and what words say; see
 * propose_internal.h. */
#include "capture/names/propose_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---------------------------------------------------------------------------------- */

/* A word in any case; vn_name_words: what it says. */
static unsigned word_means(const char *word, size_t n)
{
	static const struct {
		const char *words;
		unsigned    bits;
	} known[] = {
		{ "q|query|queries|wq", VN_SAYS_Q },
		{ "k|key|keys|wk", VN_SAYS_K },
		{ "v|value|values|wv", VN_SAYS_V },
		{ "gate", VN_SAYS_GATE },
		{ "up", VN_SAYS_UP },
		{ "down", VN_SAYS_DOWN },
		{ "cache|past|present", VN_SAYS_CACHE },
		{ "in|inp|input|inputs|args", VN_SAYS_IN },
		{ "norm|ln|layernorm|rmsnorm|rms", VN_SAYS_NORM },
		{ "qnorm", VN_SAYS_Q | VN_SAYS_NORM },
		{ "knorm", VN_SAYS_K | VN_SAYS_NORM },
		{ "rope|rot|rotary|rotated", VN_SAYS_ROPE },
		{ "attn|attention|mha|attend", VN_SAYS_ATTN },
		{ "mlp|ffn|ff|ffw|feedforward|feed|forward", VN_SAYS_MLP },
		{ "o|wo", VN_SAYS_O },
		{ "out|output|outputs", VN_SAYS_OUT },
		{ "embed|embd|emb|embedding|embeddings|embedder", VN_SAYS_EMBED },
		{ "wte|tok|token|tokens", VN_SAYS_TOKEN },
		{ "wpe", VN_SAYS_EMBED | VN_SAYS_POSITION },
		{ "pos|position|positions|positional", VN_SAYS_POSITION },
		{ "head|logits|unembed", VN_SAYS_LOGITS },
		{ "final|last|f", VN_SAYS_FINAL },
		{ "post|after", VN_SAYS_POST },
		{ "mid", VN_SAYS_POST | VN_SAYS_ATTN },
		{ "pre|before", VN_SAYS_PRE },
		{ "probs|prob|probabilities|softmax|soft|max|weights", VN_SAYS_PROBS },
		{ "scores|score|kq|qk", VN_SAYS_SCORES },
		{ "context|ctx|kqv", VN_SAYS_CONTEXT },
		{ "act|activation", VN_SAYS_ACT },
		{ "fc", VN_SAYS_FC },
		{ "proj|projection", VN_SAYS_PROJ },
		{ "qkv", VN_SAYS_QKV },
		{ "layer|layers|block|blocks|blk|h|l", VN_SAYS_LAYER },
		{ "n|c|fn|lm|self|model|transformer|decoder|backbone|module|modules|linear|dense|language|cur", 0 },
	};
	char text[16];
	if (n == 0 || n >= sizeof text)
		return VN_SAYS_OTHER;
	for (size_t i = 0; i < n; i++)
		text[i] = (char)tolower((unsigned char)word[i]);
	text[n] = '\0';
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (vn_text_is_word(known[i].words, text))
			return known[i].bits;
	return VN_SAYS_OTHER;
}

/* The number of "ln_2" or of element 1 of a tuple; 0 says nothing. */
static unsigned number_means(const char *digits, size_t n)
{
	const char first = n == 1 ? digits[0] : '9';
	return first == '0' ? 0 : first == '1' ? VN_SAYS_FIRST : first == '2' ? VN_SAYS_SECOND : VN_SAYS_OTHER;
}

unsigned vn_name_words(const char *name)
{
	unsigned    bits = 0;
	const char *p = name;
	while (*p) {
		size_t n = 0;
		while (isalpha((unsigned char)p[n]) && !(n && isupper((unsigned char)p[n]) && islower((unsigned char)p[n - 1])))
			n++;
		if (n) {
			bits |= word_means(p, n);
		} else if ((n = strspn(p, "0123456789"))) {
			bits |= number_means(p, n);
		}
		p += n ? n : 1;
	}
	return bits;
}

unsigned vn_point_words(int point)
{
	switch (point) {
	case VN_POINT_Q_PROJ:
	case VN_POINT_Q_NORM:
	case VN_POINT_Q_ROPE:
	case VN_POINT_GDN_Q:
	case VN_POINT_GDN_Q_CONV: return VN_SAYS_Q;
	case VN_POINT_K_PROJ:
	case VN_POINT_K_NORM:
	case VN_POINT_K_ROPE:
	case VN_POINT_GDN_K:
	case VN_POINT_GDN_K_CONV: return VN_SAYS_K;
	case VN_POINT_K_CACHE: return VN_SAYS_K | VN_SAYS_CACHE;
	case VN_POINT_V_CACHE: return VN_SAYS_V | VN_SAYS_CACHE;
	case VN_POINT_V_PROJ:
	case VN_POINT_GDN_V: return VN_SAYS_V;
	case VN_POINT_ATTN_GATE:
	case VN_POINT_GATE_ACT:
	case VN_POINT_GATE_PROJ: return VN_SAYS_GATE;
	case VN_POINT_UP_PROJ: return VN_SAYS_UP;
	case VN_POINT_DOWN_PROJ: return VN_SAYS_DOWN;
	case VN_POINT_INPUT: return VN_SAYS_IN;
	default: return 0;
	}
}

bool vn_words_contradict(unsigned name, int point)
{
	static const unsigned choice[] = { VN_SAYS_Q | VN_SAYS_K | VN_SAYS_V, VN_SAYS_GATE | VN_SAYS_UP | VN_SAYS_DOWN };
	const unsigned        is = vn_point_words(point), behind = VN_SAYS_POST | VN_SAYS_ATTN;
	if (point == VN_POINT_INPUT && (name & behind) == behind)
		return true;
	for (size_t i = 0; i < sizeof choice / sizeof *choice; i++)
		if ((name & choice[i]) && (is & choice[i]) && !(name & is & choice[i]))
			return true;
	return false;
}

/* ---- families ------------------------------------------------------------------------------- */

/* A number in a name. */
typedef struct name_slot {
	const char *name;
	int         named, at, end, votes;
	bool        alone; /* the only one */
} name_slot;

static int by_prefix(const void *a, const void *b)
{
	const name_slot *x = a, *y = b;
	const int        n = x->at < y->at ? x->at : y->at, c = memcmp(x->name, y->name, (size_t)n);
	return c ? c : (x->at > y->at) - (x->at < y->at);
}

VN_ORDER_BY(by_place_in_name, name_slot, VN_ORDER(x->named, y->named), VN_ORDER(x->at, y->at))

/* A name with its number taken out. */
typedef struct name_pattern {
	char from[VN_NAME_MAX + 8];
	int  n, named;
} name_pattern;

VN_ORDER_BY(by_pattern, name_pattern, strcmp(x->from, y->from), VN_ORDER(x->n, y->n))

/* Writes a name, or a part of it, as a glob that matches it: what has a meaning there becomes
 * '?'. */
static size_t write_glob(const char *name, int n, char *to)
{
	for (int i = 0; i < n; i++)
		to[i] = strchr("*?{},\"\\", name[i]) ? '?' : name[i];
	to[n] = '\0';
	return (size_t)n;
}

static void write_pattern(name_pattern *p, const name_slot *s, const char *name)
{
	int64_t n = -1;
	p->n = -1;
	if (!s || !vn_text_digits(name + s->at, &n) || n > 99999) {
		write_glob(name, (int)strlen(name), p->from);
		return;
	}
	size_t at = write_glob(name, s->at, p->from);
	at += (size_t)sprintf(p->from + at, "{n}");
	write_glob(name + s->end, (int)strlen(name + s->end), p->from + at);
	p->n = (int)n;
}

static name_slot *slots_of(const vn_tensor_name *named, int n, int *count)
{
	size_t room = 0;
	for (int i = 0; i < n; i++)
		room += strlen(named[i].name) / 2 + 1;
	*count = 0;
	name_slot *list = vn_alloc(room, sizeof *list);
	for (int i = 0; i < n; i++)
		for (const char *p = named[i].name; *p;) {
			const int length = (int)strspn(p, "0123456789"), at = (int)(p - named[i].name);
			if (length)
				list[(*count)++] = (name_slot) { .name = named[i].name, .named = i, .at = at, .end = at + length };
			p += length ? length : 1;
		}
	return list;
}

/* What stands beside a number: the same for "q_0" and the 1 of "norm2_1". */
static int beside(const name_slot *s)
{
	const unsigned char a = s->at ? (unsigned char)s->name[s->at - 1] : 0, b = (unsigned char)s->name[s->end];
	return (isalpha(a) ? 'a' : a) * 256 + (isalpha(b) ? 'a' : b);
}

VN_ORDER_BY(by_beside, name_slot, VN_ORDER(beside(x), beside(y)))

/* The number that is the layer has the same text before it in most names, or is the only number of
 * names and stands there as it does here. */
static void vote_slots(name_slot *s, int n)
{
	for (int i = 0; i < n; i++)
		s[i].alone = !(i && s[i - 1].named == s[i].named) && !(i + 1 < n && s[i + 1].named == s[i].named);
	qsort(s, (size_t)n, sizeof *s, by_prefix);
	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && by_prefix(&s[i], &s[end]) == 0;)
			end++;
		for (int k = i; k < end; k++)
			s[k].votes = end - i;
	}
	qsort(s, (size_t)n, sizeof *s, by_beside);
	for (int i = 0, end, alone; i < n; i = end) {
		for (end = i, alone = 0; end < n && by_beside(&s[i], &s[end]) == 0; end++)
			alone += s[end].alone;
		for (int k = i; k < end; k++)
			s[k].votes += alone;
	}
	qsort(s, (size_t)n, sizeof *s, by_place_in_name);
}

/* Returns how many. */
static int gather_families(name_pattern *list, int n, const vn_tensor_name *named, vn_name_family *family)
{
	int n_families = 0;
	for (int i = 0, end; i < n; i = end) {
		vn_name_family *f = &family[n_families++];
		for (end = i + 1; end < n && strcmp(list[i].from, list[end].from) == 0;)
			end++;
		*f = (vn_name_family) { .n = end - i, .words = vn_name_words(list[i].from) };
		strcpy(f->from, list[i].from);
		f->member = vn_alloc((size_t)f->n, sizeof *f->member);
		for (int k = i; k < end; k++)
			f->member[k - i] = (vn_member) { list[k].n, list[k].named };
		if (f->n == 1) { /* a number that nothing else has is a part of the name */
			const char *name = named[list[i].named].name;
			write_glob(name, (int)strlen(name), f->from);
			f->member[0].n = -1;
		}
	}
	return n_families;
}

vn_name_family *vn_families_of(const vn_tensor_name *named, int n, int *n_families)
{
	int                    count = 0;
	VN_FREED name_slot    *slot = slots_of(named, n, &count);
	VN_FREED name_pattern *list = vn_alloc((size_t)n, sizeof *list);
	vn_name_family        *family = vn_alloc_zero((size_t)n, sizeof *family);

	vote_slots(slot, count);
	for (int i = 0, s = 0; i < n; i++) {
		const name_slot *best = NULL;
		for (; s < count && slot[s].named == i; s++)
			best = !best || slot[s].votes > best->votes ? &slot[s] : best;
		list[i].named = i;
		write_pattern(&list[i], best, named[i].name);
	}
	qsort(list, (size_t)n, sizeof *list, by_pattern);
	*n_families = gather_families(list, n, named, family);
	return family;
}

void vn_name_glob(const char *name, char to[VN_NAME_MAX + 8])
{
	write_glob(name, (int)strlen(name), to);
}

void vn_families_free(vn_name_family *family, int n)
{
	for (int i = 0; family && i < n; i++)
		free(family[i].member);
	free(family);
}
