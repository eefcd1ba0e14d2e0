/* garbage.c: see garbage.h. */
#include "capture/recording/garbage.h"
#include "capture/recording/echo.h"
#include "capture/recording/logit_rows.h"
#include "libref/base/alloc.h"
#include "libref/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counting ----------------------------------------------------------------------- */

int64_t vn_longest_repetition(const int32_t *id, int64_t n, int *period, int64_t *at)
{
	int64_t longest = 0;

	*period = 0;
	*at = 0;
	for (int p = 1; p <= VN_GARBAGE_PERIOD; p++)
		for (int64_t i = p, same = 0; i < n; i++) {
			same = id[i] == id[i - p] ? same + 1 : 0;
			if (same >= 3 * p && same + p > longest) {
				longest = same + p;
				*period = p;
				*at = i + 1 - longest;
			}
		}
	return longest;
}

int64_t vn_garbage_count_ends(const int32_t *id, int64_t n, int64_t vocab)
{
	const int64_t last = vocab < 1000 ? 1 : vocab / 1000;
	int64_t       ends = 0;

	for (int64_t i = 0; i < n; i++)
		ends += id[i] >= vocab - last;
	return ends;
}

/* Returns how many bytes at the start continue a character that began earlier. */
static size_t cut_at_start(const char *text, size_t bytes)
{
	size_t n = 0;

	while (n < bytes && n < 3 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Number of bytes at the end that begin an incomplete character. */
static size_t cut_at_end(const char *text, size_t bytes)
{
	for (size_t n = 1; n <= 3 && n <= bytes; n++) {
		const unsigned char c = (unsigned char)text[bytes - n];
		if (c >= 0xc0)
			return n < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? n : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

int64_t vn_garbage_count_replaced(const char *text, size_t bytes, int64_t *of)
{
	const size_t from = cut_at_start(text, bytes), to = bytes - cut_at_end(text + from, bytes - from);
	int64_t      replaced = 0;

	*of = 0;
	for (size_t i = from; i < to; ++*of) {
		const int length = vn_utf8_length(text + i, to - i);
		replaced += length == 0 || vn_utf8_point(text + i) == 0xfffd;
		i += length ? (size_t)length : 1;
	}
	return replaced;
}

/* ---- a recording -------------------------------------------------------------------- */

/* The tokens of a run: the first `prompt` of them are given, n in all. */
typedef struct run_tokens {
	const int32_t *id;
	char *const   *text; /* NULL: not recorded */
	int64_t        prompt, n;
} run_tokens;

typedef struct chosen_tokens {
	int32_t id[VN_GARBAGE_TOKENS];
	int64_t n, vocab;
} chosen_tokens;

/* The tokens that the engine chooses after the last VN_GARBAGE_TOKENS of the run. */
static vn_status choose_tokens(vn_recording *r, const run_tokens *t, chosen_tokens *chosen, vn_error *err)
{
	const char *decoding = vn_facts_get(vn_recording_run(r), "decoding");
	const bool  own = !decoding || strcmp(decoding, "forced") != 0;
	vn_choices  c;
	int64_t     id;
	vn_status   st = vn_choices_open(&c, r, t->n, err);

	for (int64_t i = t->n > VN_GARBAGE_TOKENS ? t->n - VN_GARBAGE_TOKENS : 0; i < t->n && !st; i++) {
		if (c.at[i].entry >= 0) {
			if (!(st = vn_choices_read(&c, i, &id, err)) && id >= 0)
				chosen->id[chosen->n++] = (int32_t)id;
		} else if (own && i + 1 < t->n && i + 1 >= t->prompt) {
			chosen->id[chosen->n++] = t->id[i + 1];
		}
	}
	chosen->vocab = c.width;
	vn_choices_close(&c);
	return st;
}

/* Ids beyond the tokenizer's have an empty text, where the recording has texts. */
static int64_t count_without_text(const int32_t *id, int64_t n, int64_t vocab, const run_tokens *t)
{
	int64_t without = 0;

	for (int64_t i = 0; t->text && i < n; i++) {
		int64_t j = 0;
		while (j < t->n && t->id[j] != id[i])
			j++;
		without += j < t->n && !*t->text[j] && !vn_garbage_count_ends(&id[i], 1, vocab);
	}
	return without;
}

static void count_ids(const int32_t *id, int64_t n, int64_t vocab, vn_garbage_count *c)
{
	int64_t at;

	c->n[VN_GARBAGE_REPEATS] = vn_longest_repetition(id, n, &c->period, &at);
	c->id = n ? id[at] : -1;
	c->n[VN_GARBAGE_ENDS] = vn_garbage_count_ends(id, n, vocab);
	c->of[VN_GARBAGE_REPEATS] = c->of[VN_GARBAGE_ENDS] = n;
}

/* The scripts that are told apart; NO_SCRIPT: not a letter, or of another script. */
enum { NO_SCRIPT, LATIN, GREEK, CYRILLIC, HEBREW, ARABIC, INDIC, THAI, HAN, HANGUL, SCRIPTS };

static int script_of(uint32_t point)
{
	static const struct {
		uint32_t first, last;
		int      script;
	} ranges[] = {
		{ 'A', 'Z', LATIN },        { 'a', 'z', LATIN },        { 0xc0, 0x24f, LATIN },   { 0x370, 0x3ff, GREEK },
		{ 0x400, 0x52f, CYRILLIC }, { 0x590, 0x5ff, HEBREW },   { 0x600, 0x77f, ARABIC }, { 0x900, 0xdff, INDIC },
		{ 0xe00, 0xeff, THAI },     { 0x1100, 0x11ff, HANGUL }, { 0x3040, 0x30ff, HAN },  { 0x3400, 0x9fff, HAN },
		{ 0xac00, 0xd7af, HANGUL }, { 0x20000, 0x3ffff, HAN },
	};

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return ranges[i].script;
	return NO_SCRIPT;
}

/* Counts letters of each script, and signs as in code among the characters that are not blank. */
static void count_letters(const char *text, size_t bytes, int64_t script[SCRIPTS], vn_garbage_count *c)
{
	for (size_t i = 0; i < bytes;) {
		const int      length = vn_utf8_length(text + i, bytes - i);
		const uint32_t point = length ? vn_utf8_point(text + i) : 0xfffd;
		script[script_of(point)]++;
		c->of[VN_GARBAGE_CODE] += point > ' ';
		c->n[VN_GARBAGE_CODE] += point > ' ' && point < 0x7f && strchr("{}()[];=<>_#$\\|&*+^~`@", (int)point) != NULL;
		i += length ? (size_t)length : 1;
	}
}

/* own: the script that counts as the text's own. */
static void count_scripts(const int64_t script[SCRIPTS], int own, vn_garbage_count *c)
{
	for (int i = NO_SCRIPT + 1; i < SCRIPTS; i++) {
		c->of[VN_GARBAGE_SCRIPT] += script[i];
		c->n[VN_GARBAGE_SCRIPT] += i != own ? script[i] : 0;
	}
}

/* The text of n tokens, joined: a character may be spread over several. */
static void count_text(char *const *text, int64_t n, int64_t script[SCRIPTS], vn_garbage_count *c)
{
	size_t all = 0, bytes = 0;

	for (int64_t i = 0; i < n; i++)
		all += strlen(text[i]) + 1;
	VN_FREED char *joined = vn_alloc(all, 1);
	for (int64_t i = 0; i < n; i++) {
		memcpy(joined + bytes, text[i], strlen(text[i]) + 1);
		bytes += vn_utf8_unescape(joined + bytes);
	}
	c->n[VN_GARBAGE_CHARACTERS] = vn_garbage_count_replaced(joined, bytes, &c->of[VN_GARBAGE_CHARACTERS]);
	count_letters(joined, bytes, script, c);
}

/* Ids that are not chosen yet are -1. */
static int64_t count_known(const int32_t *ids, int64_t tokens)
{
	int64_t n = 0;

	while (n < tokens && ids[n] >= 0)
		n++;
	return n;
}

vn_status vn_garbage_of(vn_recording *r, vn_garbage *g, vn_error *err)
{
	const int32_t *ids = NULL;
	const int64_t  all = vn_recording_tokens(r, &ids, NULL), decoded = vn_recording_decoded(r);
	run_tokens     t = { ids, vn_recording_token_text(r), decoded < all ? all - decoded : 0, 0 };
	chosen_tokens  chosen = { .n = 0 };

	*g = (vn_garbage) { 0 };
	t.n = all ? count_known(ids, all) : 0;
	if (t.n == 0 || t.n < t.prompt || vn_recording_batch(r) > 1)
		return VN_OK;
	vn_status st = choose_tokens(r, &t, &chosen, err);
	if (st)
		return st;
	const vn_plan *plan = vn_recording_plan(r);
	const int64_t  vocab = chosen.vocab ? chosen.vocab : plan && plan->vocab ? plan->vocab : INT32_MAX;
	count_ids(chosen.id, chosen.n, vocab, &g->chosen);
	count_ids(ids, t.prompt, vocab, &g->prompt);
	g->chosen.n[VN_GARBAGE_ENDS] += count_without_text(chosen.id, chosen.n, vocab, &t);
	g->prompt.n[VN_GARBAGE_ENDS] += count_without_text(ids, t.prompt < VN_GARBAGE_TOKENS ? t.prompt : VN_GARBAGE_TOKENS,
	                                                   vocab, &t);
	if (t.text) {
		int64_t script[2][SCRIPTS] = { { 0 } };
		int     own = LATIN;
		count_text(t.text, t.prompt, script[0], &g->prompt);
		count_text(t.text + t.prompt, t.n - t.prompt, script[1], &g->chosen);
		for (int i = NO_SCRIPT + 1; i < SCRIPTS; i++)
			own = script[0][i] > script[0][own] ? i : own;
		count_scripts(script[0], own, &g->prompt);
		count_scripts(script[1], own, &g->chosen);
	}
	return st;
}

vn_status vn_garbage_unchosen(vn_recording *r, int64_t *differ, int64_t *of, vn_error *err)
{
	const char    *decoding = vn_facts_get(vn_recording_run(r), "decoding");
	const int32_t *ids = NULL;
	const int64_t  all = vn_recording_tokens(r, &ids, NULL), decoded = vn_recording_decoded(r);
	vn_choices     c;
	int64_t        id;

	*differ = *of = 0;
	if ((decoding && strcmp(decoding, "greedy") != 0) || vn_recording_batch(r) > 1 || decoded < 1 || decoded >= all)
		return VN_OK;
	const int64_t most = decoded < VN_GARBAGE_TOKENS ? decoded : VN_GARBAGE_TOKENS;
	vn_status     st = vn_choices_open(&c, r, all, err);
	for (int64_t i = all - most - 1; i + 1 < all && !st; i++)
		if (c.at[i].entry >= 0 && ids[i + 1] >= 0 && !(st = vn_choices_read(&c, i, &id, err)) && id >= 0) {
			*differ += id != ids[i + 1];
			++*of;
		}
	vn_choices_close(&c);
	return st;
}

/* ---- too much ------------------------------------------------------------------------ */

static double share_of(const vn_garbage_count *c, vn_garbage_sign sign)
{
	return c->of[sign] ? (double)c->n[sign] / (double)c->of[sign] : 0;
}

/* Rules, tables and lists repeat themselves, and so do small models that decode greedily, for a
 * while. But they do not put half of at least 32 tokens into one repetition; texts that repeat more
 * are allowed twice the share of the reference or the prompt. The other signs are judged like
 * an echo: its standard errors avoid false alarms on 8 tokens, and a few unused ids or a cut
 * character stay below its 5 %. Code must also reach a share of its own. */
enum { FEWEST_REPEATED = 32 };
/* Of 600 characters, without blanks, our C and JavaScript has 0.17 (median), prose at most 0.02. */
#define CODE 0.15

static bool too_many(const vn_garbage_count *c, vn_garbage_sign sign, double expected)
{
	if (sign == VN_GARBAGE_REPEATS)
		return c->of[sign] >= FEWEST_REPEATED && share_of(c, sign) > 0.5 && share_of(c, sign) > 2 * expected;
	if (sign == VN_GARBAGE_CODE && share_of(c, sign) < CODE)
		return false;
	return vn_echoes(share_of(c, sign), expected, c->of[sign]);
}

static void say_repeated(const vn_garbage_count *c, const char *who, const vn_garbage_count *than,
                         char words[VN_GARBAGE_WORDS])
{
	char what[80];

	if (c->period == 1)
		snprintf(what, sizeof what, "token %d", (int)c->id);
	else
		snprintf(what, sizeof what, "the same %d tokens, from token %d on,", c->period, (int)c->id);
	snprintf(words, VN_GARBAGE_WORDS,
	         "chosen tokens repeat: %lld of %lld are %s over and over; %s longest repetition has %lld of %lld",
	         (long long)c->n[VN_GARBAGE_REPEATS], (long long)c->of[VN_GARBAGE_REPEATS], what, who,
	         (long long)than->n[VN_GARBAGE_REPEATS], (long long)than->of[VN_GARBAGE_REPEATS]);
}

bool vn_garbage_shows(const vn_garbage *g, const vn_garbage *ref, vn_garbage_sign sign, char words[VN_GARBAGE_WORDS])
{
	static const char *const form[] = {
		[VN_GARBAGE_CHARACTERS] =
			"decoded text is garbled: %lld of %lld characters are replacement characters or bytes that are not UTF-8; "
			"%s: %lld of %lld",
		[VN_GARBAGE_ENDS] =
			"chosen tokens are unused ones: %lld of %lld have no text or are in the last 0.1 %% of the vocabulary; "
			"%s: %lld of %lld",
		[VN_GARBAGE_SCRIPT] =
			"decoded text is in another script than the prompt: %lld of %lld letters; %s: %lld of %lld",
		[VN_GARBAGE_CODE] =
			"decoded text looks like code: %lld of %lld characters are brackets or operators; %s: %lld of "
			"%lld",
	};
	const vn_garbage_count *c = &g->chosen, *than = ref ? &ref->chosen : &g->prompt;
	const char             *who = ref ? "the reference's" : "the prompt's";
	const double            text = share_of(&g->prompt, sign),
				 expected = share_of(than, sign) > text ? share_of(than, sign) : text;

	/* Without the text, or the logits, of the reference there is nothing to compare with. */
	const bool asked = !ref && (sign == VN_GARBAGE_SCRIPT || sign == VN_GARBAGE_CODE);
	if (asked || !too_many(c, sign, expected) || (ref && !than->of[sign]))
		return false;
	if (sign == VN_GARBAGE_REPEATS)
		say_repeated(c, who, than, words);
	else
		snprintf(words, VN_GARBAGE_WORDS, form[sign], (long long)c->n[sign], (long long)c->of[sign], who,
		         (long long)than->n[sign], (long long)than->of[sign]);
	return true;
}
