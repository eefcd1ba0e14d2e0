/* weights_finding.c: see weights_finding.h. */
#include "compare/weights/weights_finding.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const vn_weight_entry *vn_weight_entry_of(vn_weight_finding found)
{
	static const vn_weight_entry row[VN_N_FOUND] = {
#define WEIGHT(name, mistake, kind, title)                { mistake, kind, "", title },
#define WEIGHT_OF(name, mistake, kind, parameters, title) { mistake, kind, parameters, title },
#include "libref/plan/catalogue.def"
	};
	return &row[found];
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
	return h;
}

uint64_t vn_weight_key_of(vn_weight_finding found, uint64_t of)
{
	const uint64_t which[] = { (uint64_t)found, of };
	return hash_bytes(0xcbf29ce484222325u, which, sizeof which);
}

/* Hashes the next parameter. type: its letter in the catalogue. */
static uint64_t hash_parameter(uint64_t key, char type, va_list *args)
{
	char text[VN_WEIGHT_WORDS] = "";

	switch (type) {
	case 's': snprintf(text, sizeof text, "%s", va_arg(*args, const char *)); break;
	case 'd': snprintf(text, sizeof text, "%d", va_arg(*args, int)); break;
	case 'l': snprintf(text, sizeof text, "%lld", va_arg(*args, long long)); break;
	case 'g': snprintf(text, sizeof text, "%.6g", va_arg(*args, double)); break;
	default: assert(0); /* the catalogue has no other letter */
	}
	return hash_bytes(key, text, strlen(text) + 1);
}

uint64_t vn_weight_say(char says[VN_WEIGHT_WORDS], vn_weight_finding found, const char *title, va_list args)
{
	uint64_t key = vn_weight_key_of(found, 0);
	va_list  again;

	va_copy(again, args);
	for (const char *type = vn_weight_entry_of(found)->parameters; *type; type++)
		key = hash_parameter(key, *type, &again);
	va_end(again);
	vsnprintf(says, VN_WEIGHT_WORDS, title, args);
	return key;
}

bool vn_weight_is(vn_weight_difference *d, int side, vn_weight_proof proof, vn_weight_finding found, const char *title,
                  ...)
{
	char    says[VN_WEIGHT_WORDS];
	va_list args;

	va_start(args, title);
	const uint64_t key = vn_weight_say(says, found, title, args);
	va_end(args);
	return vn_weight_is_said(d, side, proof, found, key, says);
}

bool vn_weight_is_said(vn_weight_difference *d, int side, vn_weight_proof proof, vn_weight_finding found, uint64_t key,
                       const char *says)
{
	d->proof = proof;
	d->certain = proof != VN_PROOF_STATISTICS;
	d->kind = vn_weight_entry_of(found)->kind;
	d->key = side ? key : ~key;
	char words[VN_WEIGHT_WORDS];
	snprintf(words, sizeof words, "%s%s", side ? "" : "in the reference: ", says);
	d->words = vn_alloc_check(vn_intern(words));
	return vn_weight_shows(d, vn_weight_entry_of(found)->id);
}

bool vn_weight_shows(vn_weight_difference *d, vn_mistake id)
{
	snprintf(d->id, sizeof d->id, "%s", vn_mistake_id(id));
	return true;
}
