/* policy.c: see policy.h. */
#include "libref/plan/policy.h"

#include "libref/base/intern.h"
#include "libref/base/nearest.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct { const char *name; vn_policy policy; } table[] = {
	{ "f32",          { VN_F32, VN_F32, VN_PRODUCTS_PLAIN, { 0 } } },
	{ "f64",          { VN_F64, VN_F64, VN_PRODUCTS_PLAIN, { 0 } } },
	{ "f16",          { VN_F16, VN_F32, VN_PRODUCTS_PLAIN, { 0 } } },
	{ "f16-acc16",    { VN_F16, VN_F16, VN_PRODUCTS_PLAIN, { 0 } } },
	{ "bf16",         { VN_BF16, VN_F32, VN_PRODUCTS_PLAIN, { 0 } } },
	{ "ggml",         { VN_F32, VN_F32, VN_PRODUCTS_GGML, { 0 } } },
	{ "ggml-kv16",    { VN_F32, VN_F32, VN_PRODUCTS_GGML_KV16, { 0 } } },
	{ "ggml-flash16", { VN_F32, VN_F32, VN_PRODUCTS_GGML_FLASH16, { 0 } } },
};
/* clang-format on */

const char *const vn_policy_names = "f32|f64|f16|f16-acc16|bf16|ggml|ggml-kv16|ggml-flash16";

vn_dtype vn_policy_dtype(vn_policy p, bool wide)
{
	return wide && p.storage != VN_F64 ? VN_F32 : p.storage;
}

static const char *const role_name[VN_N_ROLES] = { "weights", "products", "linear", "cache", "softmax" };
static const struct {
	const char *name;
	int         digits;
} role_format[VN_N_ROLE_FORMATS] = { { "", 0 },         { "tf32", 10 },      { "f16", 10 },
	                                 { "bf16", 7 },     { "q8_0", 7 },       { "q8_0-rotated", 7 },
	                                 { "int8", 7 },     { "int8-token", 7 }, { "int8-channel", 7 },
	                                 { "f8", 3 },       { "f8-scaled", 3 },  { "int8-inputs", 7 },
	                                 { "q8-inputs", 7 } };

int vn_policy_digits(vn_policy p)
{
	int digits = vn_dtype_digits(p.products && p.storage == VN_F32 ? VN_BF16 : p.storage);
	for (int i = 0; i < VN_N_ROLES; i++)
		if (p.role[i] && role_format[p.role[i]].digits < digits)
			digits = role_format[p.role[i]].digits;
	return digits;
}

vn_policy vn_policy_fine(vn_policy p)
{
	const vn_dtype in = p.storage == VN_F16 || p.storage == VN_BF16 ? VN_F32 : VN_F64;
	p.storage = p.sums = in;
	p.products = p.products ? VN_PRODUCTS_GGML : VN_PRODUCTS_PLAIN;
	p.role[VN_OTHER_TIES] = VN_ROLE_INT8;
	return p;
}

static vn_policy without_roles(vn_policy p)
{
	memset(p.role, 0, sizeof p.role);
	return p;
}

static const char *base_name(vn_policy p)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (vn_policy_same(table[i].policy, without_roles(p)))
			return table[i].name;
	return NULL;
}

static const char of_prompt[] = "-prompt";

static bool is_of_prompt(vn_policy p, int role)
{
	return role == VN_ROLE_CACHE && p.role[VN_CACHE_OF_PROMPT];
}

const char *vn_policy_name(vn_policy p)
{
	const char *base = base_name(p), *kept;
	char        name[120] = "";

	if (!base || !vn_policy_mixed(p))
		return base ? base : "unknown";
	vn_text_add(name, sizeof name, "%s", base);
	for (int i = 0; i < VN_N_ROLES; i++)
		if (p.role[i])
			vn_text_add(name, sizeof name, ",%s=%s%s", role_name[i], role_format[p.role[i]].name,
			            is_of_prompt(p, i) ? of_prompt : "");
	kept = vn_intern(name);
	return kept ? kept : "unknown";
}

const char *vn_policy_words(vn_policy p, char *text, size_t room)
{
	*text = '\0';
	for (int i = 0; i < VN_N_ROLES; i++)
		if (p.role[i])
			vn_text_add(text, room, "%s%s%s in %s", *text ? ", " : "", role_name[i],
			            is_of_prompt(p, i) ? " of the first call" : "", role_format[p.role[i]].name);
	vn_text_add(text, room, "%s%s", *text ? "; all else " : "", base_name(p) ? base_name(p) : "unknown");
	return text;
}

/* "int8-prompt": without its last word, and marks the policy */
static size_t read_of_prompt(const char *text, size_t n, vn_policy *p)
{
	const size_t last = sizeof of_prompt - 1;

	if (n <= last || strncmp(text + n - last, of_prompt, last) != 0)
		return n;
	p->role[VN_CACHE_OF_PROMPT] = VN_ROLE_INT8;
	return n - last;
}

/* "cache=f16,products=bf16", n bytes up to the next comma each */
static bool read_role(const char *text, size_t n, vn_policy *p)
{
	for (int r = 0; r < VN_N_ROLES; r++) {
		const size_t name = strlen(role_name[r]);
		if (n <= name || strncmp(text, role_name[r], name) != 0 || text[name] != '=')
			continue;
		n = r == VN_ROLE_CACHE ? read_of_prompt(text, n, p) : n;
		for (int f = VN_ROLE_AS_STORED + 1; f < VN_N_ROLE_FORMATS; f++)
			if (n == name + 1 + strlen(role_format[f].name) &&
			    strncmp(text + name + 1, role_format[f].name, n - name - 1) == 0 && !p->role[r] &&
			    (!vn_role_of_cache((vn_role_format)f) || r == VN_ROLE_CACHE) &&
			    (!vn_role_of_inputs((vn_role_format)f) || r == VN_ROLE_LINEAR)) {
				p->role[r] = (vn_role_format)f;
				return true;
			}
	}
	return false;
}

static bool read_roles(const char *text, vn_policy *p)
{
	bool good = true;
	while (good && *text == ',') {
		const size_t n = strcspn(++text, ",");
		good = read_role(text, n, p);
		text += n;
	}
	return good && !*text && !(p->role[VN_ROLE_PRODUCTS] && p->role[VN_ROLE_LINEAR]);
}

static bool read_base(const char *name, size_t n, vn_policy *p)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strlen(table[i].name) == n && strncmp(table[i].name, name, n) == 0) {
			*p = table[i].policy;
			return true;
		}
	return false;
}

int vn_policy_from_name(const char *name, vn_policy *p)
{
	const size_t n = strcspn(name, ",");
	vn_policy    read;

	if (!read_base(name, n, &read) || !read_roles(name + n, &read))
		return 0;
	*p = read;
	return 1;
}

const char *vn_policy_partly(const char *word)
{
	static const char *const before[] = { "autocast-", "mixed-" };
	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		if (strncmp(word, before[i], strlen(before[i])) == 0)
			return word + strlen(before[i]);
	return NULL;
}

int vn_policy_from_word(const char *word, vn_policy *p)
{
	static const char *const other[][2] = {
		{ "fp16", "f16" },  { "float16", "f16" }, { "half", "f16" },    { "fp32", "f32" },   { "float32", "f32" },
		{ "float", "f32" }, { "fp64", "f64" },    { "float64", "f64" }, { "double", "f64" }, { "bfloat16", "bf16" },
	};
	/* as the callback of llama.cpp says it */
	static const char kv[] = "ggml-kv-";
	char              lower[120] = "";
	word = vn_policy_partly(word) ? vn_policy_partly(word) : word;
	if (strncmp(word, "torch.", 6) == 0)
		word += 6;
	if (strlen(word) >= sizeof lower)
		return 0;
	for (size_t i = 0; word[i]; i++)
		lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] - 'A' + 'a' : word[i]);
	if (strncmp(lower, kv, sizeof kv - 1) == 0) {
		char name[sizeof lower + 16];
		snprintf(name, sizeof name, "ggml,cache=%s%s", lower + sizeof kv - 1,
		         strcmp(lower + sizeof kv - 1, "q8_0") == 0 ? "-rotated" : "");
		return vn_policy_from_name(name, p);
	}
	const size_t n = strcspn(lower, ",");
	vn_policy    read;
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (strlen(other[i][0]) == n && strncmp(other[i][0], lower, n) == 0) {
			if (!vn_policy_from_name(other[i][1], &read) || !read_roles(lower + n, &read))
				return 0;
			*p = read;
			return 1;
		}
	return vn_policy_from_name(lower, p);
}

vn_status vn_policy_read(const char *option, const char *names, const char *name, vn_policy *p, vn_error *err)
{
	vn_nearest near;
	char       all[120], base[32];

	snprintf(base, sizeof base, "%.*s", (int)strcspn(name, ","), name);
	if (vn_text_is_word(names, base) && (!strchr(name, ',') || names == vn_policy_names) &&
	    vn_policy_from_name(name, p))
		return VN_OK;
	if (vn_text_is_word(names, base) && names == vn_policy_names)
		return vn_fail(err, VN_ERR_USAGE,
		               "%s: after %s come weights=, products= or linear=, cache=, softmax=, each once and with "
		               "tf32, f16, bf16, q8_0, int8 or f8: %s,cache=f16; not '%s'",
		               option, base, base, name + strlen(base));
	vn_nearest_start(&near, name);
	vn_nearest_try_words(&near, names);
	/* the suggestion for a word at equal distances */
	if (vn_policy_from_word(name, p) && vn_text_is_word(names, vn_policy_name(*p)))
		vn_nearest_settle(&near, vn_policy_name(*p));
	return vn_fail(err, VN_ERR_USAGE, "%s takes %s, not '%s'%s", option, vn_text_words(names, all, sizeof all), name,
	               vn_nearest_hint(&near));
}
