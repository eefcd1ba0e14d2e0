/* help_words.h: what the documentation says of one word: an id of a mistake, a term, a metric. */
#ifndef VN_COMPARE_HELP_WORDS_H
#define VN_COMPARE_HELP_WORDS_H

#include <stdbool.h>

/* Prints what is known of the word: the row of the catalogue ("R2.1e4"), the entry of a glossary or
 * of a table, the section of this title, the paragraph that defines it. Returns false, and prints
 * nothing, if no page has it. */
bool vn_help_word(const char *word);

#endif
