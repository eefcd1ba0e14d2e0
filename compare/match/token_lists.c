/* token_lists.c: see token_lists.h. */
#include "compare/match/token_lists.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include "capture/file/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3, TEXT = 96 };

typedef struct token_sides {
	const vn_token_list *side[2];
	const vn_tokenizer  *tokenizer;
	int64_t              before, after; /* how many tokens at the start and at the end are equal */
} token_sides;

static int64_t differing(const token_sides *s, int k)
{
	return s->side[k]->n - s->before - s->after;
}

/* The text of one token; NULL: it is not known. *own: to be freed. */
static const char *text_of_one(const token_sides *s, int k, int64_t i, char **own)
{
	const vn_token_list *other = s->side[!k];

	*own = NULL;
	if (s->side[k]->text)
		return s->side[k]->text[i];
	for (int64_t j = 0; other->text && j < other->n; j++)
		if (other->ids[j] == s->side[k]->ids[i])
			return other->text[j];
	return s->tokenizer ? (*own = vn_tokenizer_show(s->tokenizer, s->side[k]->ids[i])) : NULL;
}

/* The text of the first `most` tokens that differ on side k, to be freed; NULL: it is not known. */
static char *text_of(const token_sides *s, int k, int64_t most)
{
	char         *text = NULL;
	size_t        room = 0;
	FILE         *to = open_memstream(&text, &room);
	const int64_t n = differing(s, k) < most ? differing(s, k) : most;
	bool          known = to && n > 0;

	for (int64_t i = 0; known && i < n; i++) {
		VN_FREED char *own = NULL;
		const char    *one = text_of_one(s, k, s->before + i, &own);
		known = one != NULL;
		vn_say(to, "%s", one ? one : "");
	}
	if ((to && !vn_text_close(to, &text)) || !known) {
		free(text);
		return NULL;
	}
	return text;
}

/* Appends "500, 51 ("<s>a")". */
static void add_tokens(const token_sides *s, int k, char words[VN_TOKENS_WORDS])
{
	VN_FREED char *text = text_of(s, k, SHOWN);

	for (int64_t i = 0; i < differing(s, k) && i < SHOWN; i++)
		vn_text_add(words, VN_TOKENS_WORDS, "%s%d", i ? ", " : "", s->side[k]->ids[s->before + i]);
	if (differing(s, k) > SHOWN)
		vn_text_add(words, VN_TOKENS_WORDS, "...");
	if (text && strlen(text) < TEXT)
		vn_text_add(words, VN_TOKENS_WORDS, " (\"%s\")", text);
}

static void count_equal(token_sides *s)
{
	const vn_token_list *a = s->side[0], *b = s->side[1];
	const int64_t        least = a->n < b->n ? a->n : b->n;

	while (s->before < least && a->ids[s->before] == b->ids[s->before])
		s->before++;
	while (s->after < least - s->before && a->ids[a->n - 1 - s->after] == b->ids[b->n - 1 - s->after])
		s->after++;
	/* Of equal tokens in a row, the first is the one too many. */
	const int      k = a->n > b->n ? 0 : 1;
	const int32_t *more = s->side[k]->ids;
	while (differing(s, !k) == 0 && differing(s, k) > 0 && s->before > 0 &&
	       more[s->before - 1] == more[s->before - 1 + differing(s, k)]) {
		s->before--;
		s->after++;
	}
}

/* One side has some tokens more: which, where, and whether they are doubled. */
static void say_more(const token_sides *s, int k, const char *who, char words[VN_TOKENS_WORDS])
{
	const int64_t  n = differing(s, k);
	const int32_t *more = s->side[k]->ids + s->before;
	const bool     doubled = s->after >= n && memcmp(more, more + n, (size_t)n * sizeof *more) == 0;

	vn_text_add(words, VN_TOKENS_WORDS, "; the %s has %lld more ", k ? who : "reference", (long long)n);
	if (s->before == 0)
		vn_text_add(words, VN_TOKENS_WORDS, "in front: ");
	else if (s->after == 0)
		vn_text_add(words, VN_TOKENS_WORDS, "at the end: ");
	else
		vn_text_add(words, VN_TOKENS_WORDS, "from number %lld on: ", (long long)s->before);
	add_tokens(s, k, words);
	if (doubled && s->before == 0 && n == 1)
		vn_text_add(words, VN_TOKENS_WORDS, ", which is there twice: the text has one, and the tokenizer adds another");
	else if (doubled)
		vn_text_add(words, VN_TOKENS_WORDS, ", which %s there twice", n == 1 ? "is" : "are");
}

/* Both sides have tokens of their own between equal ones. */
static void say_others(const token_sides *s, const char *who, char words[VN_TOKENS_WORDS])
{
	char         *text[2] = { text_of(s, 0, INT64_MAX), text_of(s, 1, INT64_MAX) };
	const bool    same = text[0] && text[1] && strcmp(text[0], text[1]) == 0;
	const int64_t least = s->side[0]->n < s->side[1]->n ? s->side[0]->n : s->side[1]->n;

	if (same || 2 * (s->before + s->after) >= least) {
		vn_text_add(words, VN_TOKENS_WORDS,
		            "; the first %lld and the last %lld are equal, between them the reference has ",
		            (long long)s->before, (long long)s->after);
		add_tokens(s, 0, words);
		vn_text_add(words, VN_TOKENS_WORDS, ", the %s ", who);
		add_tokens(s, 1, words);
	}
	if (same)
		vn_text_add(words, VN_TOKENS_WORDS, ": the same text, divided by another tokenizer or pre-tokenizer");
	VN_FREE(text[0], text[1]);
}

char *vn_tokens_differ(const vn_token_list *ref, const vn_token_list *other, const char *who,
                       const vn_tokenizer *tokenizer, char words[VN_TOKENS_WORDS])
{
	token_sides s = { .side = { ref, other }, .tokenizer = tokenizer };

	*words = 0;
	count_equal(&s);
	if (differing(&s, 0) + differing(&s, 1) == 0)
		return words;
	if (differing(&s, 0) == 0 || differing(&s, 1) == 0)
		say_more(&s, differing(&s, 1) > 0, who, words);
	else if (differing(&s, 0) + differing(&s, 1) > 2) /* of one token, its number and ids say all */
		say_others(&s, who, words);
	return words;
}
