/* sentence.c: see sentence.h. */
#include "compare/explain/sentence.h"

const char *vn_sentence_name(const vn_plan *p, int value)
{
	return p->value[value].name;
}

const char *vn_sentence_range(int64_t one, int64_t first, int64_t last, char text[64])
{
	if (!last && !first)
		first = last = one;
	snprintf(text, 64,
	         first == last       ? "%lld"
	         : last == first + 1 ? "%lld or %lld"
	                             : "%lld to %lld",
	         (long long)first, (long long)last);
	return text;
}
