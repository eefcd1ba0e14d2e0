/* places.h: one place in all layers: names that differ only in the numbers of layers and calls.
 *
 * Owner   a vn_name_places owns its list; names are borrowed.
 */
#pragma once

#include "libref/plan/plan.h"

/* Writes "model.layers.*.mlp.gate" for "model.layers.3.mlp.gate", "layer*.q_rope" for
 * "layer3.q_rope": without numbers of layers (between dots) and of calls (behind @). Returns
 * text. */
char *vn_place_of(const char *name, char text[VN_NAME_MAX]);

/* Names of one place. */
typedef struct vn_name_place {
	char        place[VN_NAME_MAX];
	const char *first; /* name */
	int         times;
} vn_name_place;

typedef struct vn_name_places {
	vn_name_place *of;
	int            n;
} vn_name_places;

/* Counts a name. Without memory, or after 4096 places, it is not counted. */
void  vn_places_add(vn_name_places *p, const char *name);
/* Writes "model.layers.*.mlp.gate (24), lm_head and 3 more": the first `most` places, in the order
 * in which they were added. Returns text (room bytes). */
char *vn_places_say(const vn_name_places *p, int most, char *text, size_t room);
void  vn_places_free(vn_name_places *p);
