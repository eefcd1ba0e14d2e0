/* pre.c: the pre-tokenizers that are known by name: specs/models.md, "Pre-tokenizer patterns". */
#include "libref/text/tokenizer_internal.h"

#include <string.h>

#define CONTRACTIONS     "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES_AND_BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char vn_gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static const vn_pre known[] = {
	{ "gpt-2", vn_gpt2_pattern, false, false, false },
	{ "qwen2", CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_BLANKS,
	  true, false, false },
	{ "qwen35",
	  CONTRACTIONS
	  "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES_AND_BLANKS,
	  true, false, false },
	{ "llama-bpe",
	  CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_BLANKS, false,
	  true, true },
};

const char vn_pre_names[] = "gpt-2, qwen2, qwen35, llama-bpe";

const vn_pre *vn_pre_find(const char *name)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0)
			return &known[i];
	return NULL;
}
