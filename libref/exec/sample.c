/* sample.c: see sample.h. */
#include "libref/exec/sample.h"

#include "libref/ops/exp.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

enum { SCORES_AT_ONCE = 1024 }; /* scores converted at a time */

void vn_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c[4] = { counter[0], counter[1], counter[2], counter[3] };
	uint32_t k[2] = { key[0], key[1] };

	for (int round = 0; round < 10; round++) {
		const uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
		const uint32_t x = (uint32_t)(b >> 32) ^ c[1] ^ k[0], y = (uint32_t)(a >> 32) ^ c[3] ^ k[1];
		c[0] = x;
		c[1] = (uint32_t)b;
		c[2] = y;
		c[3] = (uint32_t)a;
		k[0] += 0x9E3779B9; /* the golden ratio, and sqrt 3 - 1 */
		k[1] += 0xBB67AE85;
	}
	for (int i = 0; i < 4; i++)
		out[i] = c[i];
}

double vn_draw(uint64_t seed, uint64_t step)
{
	const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	const uint32_t counter[4] = { (uint32_t)step, (uint32_t)(step >> 32), 0, 0 };
	uint32_t       bits[4];

	vn_philox(counter, key, bits);
	return ((double)(bits[0] >> 5) * 0x1p26 + (double)(bits[1] >> 6)) * 0x1p-53;
}

/* Converts up to SCORES_AT_ONCE scores from `from` on. Returns how many. */
static int64_t read_scores(const vn_next_scores *s, int64_t from, double x[SCORES_AT_ONCE])
{
	const int64_t n = s->V - from < SCORES_AT_ONCE ? s->V - from : SCORES_AT_ONCE;

	vn_to_f64(x, (const char *)s->data + (size_t)from * vn_dtype_size(s->dtype), s->dtype, (size_t)n);
	return n;
}

/* The highest score and the first id that has it; false when no token can be chosen. */
static bool find_highest(const vn_next_scores *s, double *max, int32_t *id)
{
	double x[SCORES_AT_ONCE];

	*max = -INFINITY;
	*id = -1;
	for (int64_t i = 0; i < s->V; i += SCORES_AT_ONCE) {
		const int64_t n = read_scores(s, i, x);
		for (int64_t k = 0; k < n; k++) {
			if (!(x[k] < INFINITY)) /* NaN too */
				return false;
			if (x[k] > *max) {
				*max = x[k];
				*id = (int32_t)(i + k);
			}
		}
	}
	return *id >= 0;
}

/* The first id at which the running sum exceeds `past`, or V; *sum: the sum reached. */
static int64_t run_up(const vn_next_scores *s, double max, double temperature, double past, double *sum)
{
	double x[SCORES_AT_ONCE];

	*sum = 0.0;
	for (int64_t i = 0; i < s->V; i += SCORES_AT_ONCE) {
		const int64_t n = read_scores(s, i, x);
		for (int64_t k = 0; k < n; k++) {
			*sum += vn_exp((x[k] - max) / temperature);
			if (*sum > past)
				return i + k;
		}
	}
	return s->V;
}

vn_status vn_sample(const vn_next_scores *s, double temperature, double u, int32_t *id, vn_error *err)
{
	double max, sum, part;

	if (!find_highest(s, &max, id))
		return vn_fail(err, VN_ERR_FORMAT, "no token can be chosen: the %" PRId64 " logits hold NaN or infinity", s->V);
	if (temperature > 0.0) {
		run_up(s, max, temperature, INFINITY, &sum);
		/* u < 1, so u times the sum is below the sum even after rounding,
		 * and some id is reached. */
		*id = (int32_t)run_up(s, max, temperature, u * sum, &part);
	}
	return VN_OK;
}
