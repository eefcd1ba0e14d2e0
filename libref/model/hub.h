/* hub.h: models that HuggingFace's tools have downloaded, by their names. */
#pragma once

#include "libref/base/nearest.h"

#include <stdbool.h>

/* Replaces "owner/name", or "name" of a model without owner, by the path of its snapshot in the
 * cache of HuggingFace, where a command line gives a model: behind --model, or as an argument that
 * follows no option; a name without owner only of a command that takes models. A path that exists
 * stays. The paths live as long as the program. */
void        vn_hub_replace(int argc, char **argv);
/* The same of one word: the path of its snapshot, or the word. */
const char *vn_hub_path(const char *word);
/* Does the cache have a model of this name? */
bool        vn_hub_has(const char *name);
/* Tries the other names in the cache (nearest.h): other cases of the same letters are near, too. */
void        vn_hub_nearest(vn_nearest *n);
