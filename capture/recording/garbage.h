/* garbage.h: finds signs that the tokens chosen by an engine are not plausible text.
 *
 * Signs are counted: repetitions of one token or a short sequence; characters that text from a
 * tokenizer does not contain (U+FFFD, bytes that are not UTF-8); ids at the end of the vocabulary,
 * where models keep unused rows; letters of another script than the prompt's; signs as in code.
 * Ordinary text contains some of each, so the counts are compared with those of the reference or,
 * without one, of the prompt. A prompt may ask for code or another script: these two need a
 * reference.
 */
#pragma once

#include "capture/recording/recording.h"

/* VN_GARBAGE_TOKENS: in a longer recording, only the last tokens are examined. */
enum { VN_GARBAGE_TOKENS = 256, VN_GARBAGE_PERIOD = 8, VN_GARBAGE_WORDS = 240 };

typedef enum vn_garbage_sign {
	VN_GARBAGE_REPEATS,
	VN_GARBAGE_CHARACTERS,
	VN_GARBAGE_ENDS,
	VN_GARBAGE_SCRIPT,
	VN_GARBAGE_CODE,
	VN_N_GARBAGE_SIGNS
} vn_garbage_sign;

/* Counts of each sign, over some tokens or the characters of their text. */
typedef struct vn_garbage_count {
	int64_t n[VN_N_GARBAGE_SIGNS], of[VN_N_GARBAGE_SIGNS];
	int     period; /* of the longest repetition, in tokens */
	int32_t id;     /* its first token */
} vn_garbage_count;

/* The counts of a recording. Zeroed: nothing was counted. */
typedef struct vn_garbage {
	vn_garbage_count chosen, prompt;
} vn_garbage;

/* Returns the number of tokens in the longest stretch that repeats its first `period` tokens, 1 to
 * VN_GARBAGE_PERIOD, at least four times; 0: there is none. *at: its first token. */
int64_t vn_longest_repetition(const int32_t *id, int64_t n, int *period, int64_t *at);
/* Counts ids in the last thousandth of the vocabulary (at least one id), or beyond it. */
int64_t vn_garbage_count_ends(const int32_t *id, int64_t n, int64_t vocab);
/* Counts U+FFFD and bytes that are not UTF-8. A character that is cut at either end of the text
 * does not count. *of: characters, and such bytes. */
int64_t vn_garbage_count_replaced(const char *text, size_t bytes, int64_t *of);

/* Counts. Chosen tokens are those with the highest logit, and where logits are missing those that
 * later steps read, unless the recording says that they were forced. Characters are those of the
 * text of tokens that later steps read. */
vn_status vn_garbage_of(vn_recording *r, vn_garbage *g, vn_error *err);

/* Counts the decoded tokens, of the last VN_GARBAGE_TOKENS, that are not the highest of the logits
 * before them. *of: those with logits; 0 if the recording says that they were sampled or forced. */
vn_status vn_garbage_unchosen(vn_recording *r, int64_t *differ, int64_t *of, vn_error *err);

/* Is this sign far above what is expected: the reference's count, or the prompt's if ref is NULL?
 * Then fills words, the rest of a sentence that begins with the owner of the tokens: "chosen tokens
 * repeat: ...". */
bool vn_garbage_shows(const vn_garbage *g, const vn_garbage *ref, vn_garbage_sign sign, char words[VN_GARBAGE_WORDS]);
