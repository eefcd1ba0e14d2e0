/* variants.c: see variants.h. */
#include "compare/replayed/variants.h"

#include <string.h>

static const struct {
	const char *word;
	vn_mistake  id;
	const char *form;
} variants[] = {
#define VARIANT(word, mistake, form) { word, mistake, form },
#include "compare/replayed/variants.def"
};

int vn_variant_find(const char *word)
{
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
		if (strcmp(variants[i].word, word) == 0)
			return (int)i;
	return -1;
}

vn_mistake vn_variant_mistake(int row)
{
	return variants[row].id;
}

const char *vn_variant_form(int row)
{
	return variants[row].form;
}
