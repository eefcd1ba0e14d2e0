/* facts.h: what an engine states about itself, as key-value pairs for /run in a recording. */
#pragma once

#define VN_FACTS_MAX  64
#define VN_FACT_KEY   32
#define VN_FACT_VALUE 256

typedef struct vn_facts {
	int n;
	struct {
		char key[VN_FACT_KEY], value[VN_FACT_VALUE];
	} fact[VN_FACTS_MAX];
} vn_facts;

/* Adds or replaces a fact. Long values are cut; facts beyond VN_FACTS_MAX are dropped (assert). */
__attribute__((format(printf, 3, 4))) void vn_facts_set(vn_facts *f, const char *key, const char *format, ...);
const char                                *vn_facts_get(const vn_facts *f, const char *key); /* NULL if absent */
