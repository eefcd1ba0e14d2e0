/* channels.c: sums of single channels over a sample of tokens, and the metrics of the worst and the
 * median channel.
 *
 * A channel is one position of the axes other than the token axis: a number of the hidden size, or
 * one of a head. Sums over a tensor or a token are dominated by its largest channel, which in
 * trained models may be a thousand times the others; here each channel counts once.
 *
 * Equal tokens have equal errors, so different tokens are counted, not tokens.
 *
 * A tiny channel is measured against the others, as tiny tokens are (tokens.c): below half of the
 * median channel's norm it counts as if it had that norm. If most channels are zero, the bound is
 * 2^-15 of the sample's rms.
 */
#include "compare/metrics/average.h"
#include "compare/metrics/channels.h"
#include "compare/metrics/pages.h"
#include "compare/metrics/tokens.h"

#include "libref/base/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENOUGH_FOR_MEDIAN = 32,    /* numbers needed for a median factor and its spread */
	LOOKED_AT = 64,            /* numbers of a token that distinguish it from another */
	MOST = 1 << 16,            /* widest row: for vocabularies, the sums alone would dominate memory */
	STEP = 1024,               /* channels whose sums stay in the cache */
	LARGE = 1 << 19,           /* tensors from this size on are given back after reading */
	LOADED_TOGETHER = 1 << 15, /* neighbouring numbers that a page fault may load too */
};

/* Results of a reference, kept for its next candidate. */
typedef struct reference {
	const unsigned char *data; /* NULL: none */
	int64_t              outer, rows, inner;
	int64_t              different; /* distinct tokens in the sample */
	double               least;     /* as in judge; negative: some numbers were left out */
} reference;

struct vn_channels {
	double   *rr, *rd, *dd, *sort; /* (room) r.r, r.d, d.d of each channel; scratch */
	int64_t   room;
	reference last;
};

vn_channels *vn_channels_new(void)
{
	return calloc(1, sizeof(vn_channels));
}

void vn_channels_free(vn_channels *c)
{
	if (c)
		free(c->rr);
	free(c);
}

static bool make_room(vn_channels *c, int64_t n)
{
	if (n > c->room) {
		free(c->rr);
		c->room = (c->rr = malloc(4 * (size_t)n * sizeof *c->rr)) ? n : 0;
	}
	if (!c->rr)
		return false;
	c->rd = c->rr + n;
	c->dd = c->rd + n;
	c->sort = c->dd + n;
	memset(c->rr, 0, 3 * (size_t)n * sizeof *c->rr);
	return true;
}

/* Returns how many channels a tensor has: all positions of the axes other than the token axis. 0:
 * it has no tokens, its positions are keys (scores), or it is wider than any vocabulary. */
static int64_t count_channels(const vn_pair *p, const char *axes, int rank)
{
	const int64_t n = p->outer * p->inner;
	const bool    known = *axes ? vn_axes_find(axes, "key") < 0 : rank == 2; /* keys are tokens, too */
	return p->tokens && known && n <= MOST ? n : 0;
}

/* ---- sums -------------------------------------------------------------------------- */

/* The scratch of one thread in the pass. */
typedef struct sample {
	vn_pair      pair;
	int64_t      n;        /* channels */
	int          scale[2]; /* r and d times 2^-scale are summed, whose squares neither overflow nor underflow */
	bool         careful;  /* float64, int32, or some are not finite */
	vn_channels *c;
} sample;

static void add_careful(const sample *s, const vn_pair *p, int64_t at, size_t n, int64_t channel)
{
	const double unit[2] = { ldexp(1.0, -s->scale[0]), ldexp(1.0, -s->scale[1]) };
	double       x[2][VN_BLOCK];
	for (int side = 0; side < 2; side++)
		vn_block_double(p, side, at, n, x[side]);
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[0][i]) || !isfinite(x[1][i]))
			continue;
		const double r = x[0][i] * unit[0], d = x[1][i] * unit[1] - x[0][i] * unit[1];
		s->c->rr[channel + (int64_t)i] += r * r;
		s->c->rd[channel + (int64_t)i] += r * d;
		s->c->dd[channel + (int64_t)i] += d * d;
	}
}

/* Adds n <= STEP channels of one token, starting at element `at`. */
static void add_channel(const sample *s, const vn_pair *p, int64_t at, size_t n, int64_t channel)
{
	float   room[2][STEP];
	vn_side x[2];
	if (s->careful) {
		add_careful(s, p, at, n, channel);
		return;
	}
	for (int side = 0; side < 2; side++) {
		const vn_dtype d = p->dtype[side];
		x[side] = (vn_side) { vn_pair_at(p, side, at), d };
		if (d == VN_F32 || p->grid == VN_F16 || p->grid == VN_BF16)
			continue;
		p->kernel->load(room[side], x[side].data, d, n);
		x[side] = (vn_side) { room[side], VN_F32 };
	}
	p->kernel->columns(x[0], x[1], n, s->c->rr + channel, s->c->rd + channel, s->c->dd + channel);
}

int64_t vn_channel_row(int64_t i, int64_t rows, int64_t all)
{
	const uint32_t mixes = 0xe2eac659; /* the most even distribution of 3000 odd numbers tried */
	const int64_t  from = i * all / rows, to = (i + 1) * all / rows;
	uint32_t       h = (uint32_t)(i + 1) * mixes;
	h = (h ^ h >> 15) * mixes;
	h ^= h >> 16;
	return from + (int64_t)((uint64_t)h * (uint64_t)(to - from) >> 32);
}

/* Gives back the pages of a row: a mapped row of a megabyte counts as memory, and each page fault
 * loads its neighbours too. */
static void give_back(const vn_pair *p, int64_t at, int64_t n)
{
	vn_pair_give_back(p, at > LOADED_TOGETHER ? at - LOADED_TOGETHER : 0,
	                  at + n + LOADED_TOGETHER < p->n ? at + n + LOADED_TOGETHER : p->n);
}

static vn_status add_all(const sample *s, int64_t rows, vn_window *in, const vn_job *job, vn_error *err)
{
	const vn_pair *p = &s->pair;
	const bool     large = !in && p->mapped && rows * p->outer * p->inner > LARGE;
	const int64_t  step = in ? in->most : large ? LARGE : STEP;
	vn_status      st = VN_OK;
	for (int64_t o = 0; o < p->outer; o++)
		for (int64_t from = 0, n; from < p->inner; from += n) {
			n = p->inner - from < step ? p->inner - from : step;
			for (int64_t t = 0; t < rows; t++) {
				const int64_t at = (o * p->rows + vn_channel_row(t, rows, p->rows)) * p->inner + from;
				if (in && (st = vn_window_run(in, job, at, n, err)))
					return st;
				const vn_pair here = in ? vn_window_of_run(in, p, at) : *p;
				for (int64_t i = 0; i < n; i += STEP)
					add_channel(s, &here, at + i, (size_t)(n - i < STEP ? n - i : STEP), o * p->inner + from + i);
				if (large)
					give_back(p, at, n);
			}
		}
	return VN_OK;
}

/* Whether two tokens differ: a quarter of their first numbers differ by a 16th. A repeated token
 * has the same errors again, so it is no new evidence. */
VN_CLONES static bool differ(const double *x, const double *y, int64_t n)
{
	int64_t count = 0;
	for (int64_t i = 0; i < n; i++) {
		const double a = fabs(x[i]), b = fabs(y[i]), most = a > b ? a : b; /* fmax is a call */
		count += fabs(x[i] - y[i]) > most / 16;
	}
	return 4 * count >= n;
}

/* Number of distinct tokens in the sample. */
static vn_status count_different(const sample *s, int64_t rows, vn_window *in, const vn_job *job, int64_t *different,
                                 vn_error *err)
{
	const vn_pair *p = &s->pair;
	const int64_t  n = p->inner < LOOKED_AT ? p->inner : LOOKED_AT;
	double         kept[VN_CHANNEL_ROWS][LOOKED_AT];
	vn_status      st = VN_OK;
	*different = 0;
	for (int64_t t = 0; t < rows && !st; t++) {
		const int64_t at = vn_channel_row(t, rows, p->rows) * p->inner;
		if (in && (st = vn_window_run(in, job, at, n, err)))
			continue;
		const vn_pair here = in ? vn_window_of_run(in, p, at) : *p;
		double       *x = kept[*different];
		int64_t       i = 0;
		vn_block_double(&here, 0, at, (size_t)n, x);
		while (i < *different && differ(kept[i], x, n))
			i++;
		*different += i == *different;
	}
	return st;
}

/* ---- what they come to ------------------------------------------------------------------ */

/* The factors of all channels, less 1: their median, and their spread as the standard deviation of
 * a normal distribution. */
typedef struct factors {
	double middle, spread;
} factors;

/* off (n); sort: scratch. */
static factors factors_of(const double *off, double *sort, int64_t n)
{
	memcpy(sort, off, (size_t)n * sizeof *sort);
	const double middle = vn_median_of(sort, n);
	if (!(fabs(middle) < 1e6)) /* unrelated data, where all factors may be infinite */
		return (factors) { middle, 0.0 };
	for (int64_t i = 0; i < n; i++)
		sort[i] = fabs(off[i] - middle);
	return (factors) { middle, 1.4826 * vn_median_of(sort, n) };
}

/* The factor beyond 6 standard errors of the median. */
static double middle_scale(factors f, int64_t n)
{
	return fmax(fabs(f.middle) - 6.0 * 1.2533 * f.spread / sqrt((double)n), 0.0);
}

/* The r.r that smaller channels count as. */
static double least_of(vn_channels *c, int64_t n)
{
	double sum = 0.0;
	memcpy(c->sort, c->rr, (size_t)n * sizeof *c->sort);
	for (int64_t i = 0; i < n; i++)
		sum += c->rr[i];
	return fmax(vn_median_of(c->sort, n) / 4, ldexp(sum / (double)n, -30));
}

/* Is this the reference of the last call? A reference's numbers keep their address until all
 * candidates are measured. */
static bool is_last(const reference *x, const vn_pair *p)
{
	return x->data && x->data == p->data[0] && x->outer == p->outer && x->rows == p->rows && x->inner == p->inner;
}

/* different: distinct tokens in the sample. scores: the channels are scores. They are computed from
 * fewer numbers than there are channels, so all channels of a token err together, which a few
 * tokens do not average out. */
static void measure_channels(const sample *s, double least, int64_t different, bool scores, vn_measured *m)
{
	vn_channels  *c = s->c;
	const int64_t n = s->n;
	const int     up = s->scale[1] - s->scale[0];
	double        worst = -1.0, far = -1.0;

	if (least == 0.0)
		return; /* a reference of zeros is judged as a whole tensor */
	for (int64_t i = 0; i < n; i++) {
		const double rr = fmax(c->rr[i], least);
		c->rd[i] /= rr;
		c->dd[i] /= rr;
		if (up == 0)
			continue; /* the usual case; calling ldexp would double the time */
		c->rd[i] = ldexp(c->rd[i], up);
		c->dd[i] = ldexp(c->dd[i], 2 * up);
	}
	if (scores && different < VN_CHANNEL_FEWEST)
		return;
	const factors f = factors_of(c->rd, c->sort, n);
	if (n * different >= ENOUGH_FOR_MEDIAN)
		m->value[VN_M_SCALE] = fmax(m->value[VN_M_SCALE], m->middle = middle_scale(f, n));
	if (different < VN_CHANNEL_FEWEST)
		return;
	for (int64_t i = 0; i < n; i++) {
		const double off = fabs(c->rd[i]);
		const double beyond = fmax(fmin(vn_beyond(off, c->dd[i], (double)different), off - 6.0 * f.spread), 0.0);
		if (c->dd[i] > worst) {
			worst = c->dd[i];
			m->worst_nmse_channel = i;
		}
		if (beyond > far) {
			far = beyond;
			m->worst_scale_channel = i;
		}
	}
	m->value[VN_M_WORST_CHANNEL_NMSE] = worst;
	m->value[VN_M_WORST_CHANNEL_SCALE] = far;
}

vn_status vn_measure_channels(const vn_pair *p, vn_channels *c, vn_window *in, vn_job *job, vn_error *err)
{
	const int64_t n = count_channels(p, job->axes, job->ref.shape.rank),
				  rows = p->rows < VN_CHANNEL_ROWS ? p->rows : VN_CHANNEL_ROWS;
	vn_measured *m = &job->m;
	const bool wide = p->dtype[0] == VN_F64 || p->dtype[0] == VN_I32 || p->dtype[1] == VN_F64 || p->dtype[1] == VN_I32;
	sample     s = { .pair = *p, .n = n, .careful = wide || m->finite < m->n, .c = c };
	if (n == 0 || m->finite == 0)
		return VN_OK;
	if (!make_room(c, n))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld channels", (long long)n);
	for (int i = 0; i < 2 && wide; i++) {
		frexp(i ? fmax(m->absmax[0], m->absmax[1]) : m->absmax[0], &s.scale[i]);
		s.scale[i] = s.scale[i] > -1021 ? s.scale[i] : -1021; /* its inverse must be representable too */
	}
	const bool again = !in && is_last(&c->last, p);
	reference  of = { in ? NULL : p->data[0], p->outer, p->rows, p->inner, c->last.different, -1 };
	vn_status  st = add_all(&s, rows, in, job, err);
	if (!st && !again)
		st = count_different(&s, rows, in, job, &of.different, err);
	if (st)
		return st;
	const bool   known = again && !s.careful && c->last.least >= 0;
	const double least = known ? c->last.least : least_of(c, n);
	of.least = s.careful ? -1 : least;
	c->last = of;
	measure_channels(&s, least, of.different, job->scores, m);
	return VN_OK;
}
