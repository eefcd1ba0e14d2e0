/* tiny_mistral.h: a small inference engine for the examples: Mistral with one prompt, in float32,
 * slow.
 *
 * It takes the place of your engine. What matters are its calls of `put`: a name, the words of its
 * axes, the numbers. It reads a HuggingFace directory with F16 weights in one file; sizes are those
 * of the model in the guide for C. C99 and C++11.
 */
#ifndef TINY_MISTRAL_H
#define TINY_MISTRAL_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* T tokens, D model width, H query heads, G key heads, K head width, F feed-forward width, V
 * vocabulary, L layers */
enum { D = 48, H = 3, G = 1, K = 20, F = 112, V = 512, L = 2, WINDOW = 48, MOST_T = 64 };
static const double EPS = 1e-5, THETA = 10000;

/* x: the numbers in row-major order. */
typedef void tiny_put(void *context, const char *name, const char *dims, const float *x, int rank,
                      const int64_t *shape);

/* Reads a whole file, followed by a 0 byte; NULL: it does not exist. The caller frees it. */
static char *tiny_read(const char *dir, const char *file, size_t *bytes)
{
	char  path[1024];
	char *data = NULL;
	FILE *f;
	long  n;
	snprintf(path, sizeof path, "%s/%s", dir, file);
	if (!(f = fopen(path, "rb")))
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
	    (data = (char *)malloc((size_t)n + 1)) != NULL) {
		*bytes = fread(data, 1, (size_t)n, f);
		data[*bytes] = '\0';
	}
	fclose(f);
	return data;
}

static float tiny_half(uint16_t h)
{
	const int    e = h >> 10 & 31, m = h & 1023;
	const double x = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
	return (float)(h >> 15 ? -x : x);
}

/* Loads n numbers of a weight in a .safetensors file as float32. */
static void tiny_weight(const char *file, const char *name, float *to, int n)
{
	uint64_t    header;
	char        key[128];
	const char *at;
	long        begin;
	int         i;
	memcpy(&header, file, sizeof header);
	snprintf(key, sizeof key, "\"%s\":", name);
	if (!(at = strstr(file + 8, key)) || !(at = strstr(at, "\"data_offsets\":["))) {
		fprintf(stderr, "no weight %s\n", name);
		exit(2);
	}
	begin = strtol(at + strlen("\"data_offsets\":["), NULL, 10);
	for (i = 0; i < n; i++) {
		uint16_t h;
		memcpy(&h, file + 8 + header + begin + 2 * i, sizeof h);
		to[i] = tiny_half(h);
	}
}

/* y (T,M) = x (T,N) w^T, w (M,N) */
static void tiny_linear(const char *file, int layer, const char *name, float *y, const float *x, int T, int N, int M)
{
	static float w[V * D > F * D ? V * D : F * D];
	char         full[128];
	int          t, m, i;
	if (layer < 0)
		snprintf(full, sizeof full, "%s.weight", name);
	else
		snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
	tiny_weight(file, full, w, M * N);
	for (t = 0; t < T; t++)
		for (m = 0; m < M; m++) {
			double sum = 0;
			for (i = 0; i < N; i++)
				sum += (double)x[t * N + i] * (double)w[m * N + i];
			y[t * M + m] = (float)sum;
		}
}

static void tiny_norm(const char *file, int layer, const char *name, float *y, const float *x, int T)
{
	float w[D];
	char  full[128];
	int   t, i;
	if (layer < 0)
		snprintf(full, sizeof full, "model.%s.weight", name);
	else
		snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
	tiny_weight(file, full, w, D);
	for (t = 0; t < T; t++) {
		double ss = 0;
		for (i = 0; i < D; i++)
			ss += (double)x[t * D + i] * (double)x[t * D + i];
		for (i = 0; i < D; i++)
			y[t * D + i] = (float)((double)x[t * D + i] / sqrt(ss / (double)D + EPS)) * w[i];
	}
}

/* Rotates the pairs (i, i + K/2) of each head by the token's position. */
static void tiny_rope(float *y, const float *x, int T, int heads)
{
	int t, h, i;
	for (t = 0; t < T; t++)
		for (h = 0; h < heads; h++)
			for (i = 0; i < K / 2; i++) {
				const double angle = t * pow(THETA, -2.0 * i / (double)K), c = cos(angle), s = sin(angle);
				const float *a = x + (t * heads + h) * K + i;
				float       *b = y + (t * heads + h) * K + i;
				b[0] = (float)((double)a[0] * c - (double)a[K / 2] * s);
				b[K / 2] = (float)((double)a[K / 2] * c + (double)a[0] * s);
			}
}

static void tiny_attention(float *y, const float *q, const float *k, const float *v, int T)
{
	int t, h, j, i;
	for (t = 0; t < T; t++)
		for (h = 0; h < H; h++) {
			const int g = h / (H / G), first = t - WINDOW + 1 > 0 ? t - WINDOW + 1 : 0;
			double    p[MOST_T], most = -INFINITY, sum = 0;
			for (j = first; j <= t; j++) {
				for (p[j] = 0, i = 0; i < K; i++)
					p[j] += (double)q[(t * H + h) * K + i] * (double)k[(j * G + g) * K + i];
				p[j] /= sqrt((double)K);
				most = p[j] > most ? p[j] : most;
			}
			for (j = first; j <= t; j++)
				sum += p[j] = exp(p[j] - most);
			for (i = 0; i < K; i++) {
				double x = 0;
				for (j = first; j <= t; j++)
					x += p[j] / sum * (double)v[(j * G + g) * K + i];
				y[(t * H + h) * K + i] = (float)x;
			}
		}
}

/* Returns 0, or -1 if the model cannot be read. */
static int tiny_run(const char *dir, const int32_t *ids, int T, tiny_put *put, void *context)
{
	static float table[V * D], x[MOST_T * D], h[MOST_T * H * K], q[MOST_T * H * K], qr[MOST_T * H * K],
		k[MOST_T * G * K], kr[MOST_T * G * K], v[MOST_T * G * K], o[MOST_T * D], gate[MOST_T * F], up[MOST_T * F],
		logits[MOST_T * V];
	const int64_t hidden[] = { T, D }, heads[] = { T, H, K }, kv_heads[] = { T, G, K }, ffn[] = { T, F },
				  vocab[] = { T, V };
	size_t bytes;
	char  *file = tiny_read(dir, "model.safetensors", &bytes), name[64];
	int    l, i;

	if (!file || T > MOST_T) {
		free(file);
		return -1;
	}
	tiny_weight(file, "model.embed_tokens.weight", table, V * D);
	for (i = 0; i < T * D; i++)
		x[i] = table[ids[i / D] * D + i % D];
	put(context, "embed", "token hidden", x, 2, hidden);
#define PUT(point, dims, numbers, rank, shape) \
	(snprintf(name, sizeof name, "layer%d." point, l), put(context, name, dims, numbers, rank, shape))
	for (l = 0; l < L; l++) {
		tiny_norm(file, l, "input_layernorm", h, x, T);
		PUT("attn_norm", "token hidden", h, 2, hidden);
		tiny_linear(file, l, "self_attn.q_proj", q, h, T, D, H * K);
		tiny_linear(file, l, "self_attn.k_proj", k, h, T, D, G * K);
		tiny_linear(file, l, "self_attn.v_proj", v, h, T, D, G * K);
		PUT("q_proj", "token head dim", q, 3, heads);
		PUT("k_proj", "token kv_head dim", k, 3, kv_heads);
		PUT("v_proj", "token kv_head dim", v, 3, kv_heads);
		tiny_rope(qr, q, T, H);
		tiny_rope(kr, k, T, G);
		PUT("q_rope", "token head dim", qr, 3, heads);
		PUT("k_rope", "token kv_head dim", kr, 3, kv_heads);
		tiny_attention(h, qr, kr, v, T);
		PUT("attn_context", "token head dim", h, 3, heads);
		tiny_linear(file, l, "self_attn.o_proj", o, h, T, H * K, D);
		PUT("attn_out", "token hidden", o, 2, hidden);
		for (i = 0; i < T * D; i++)
			x[i] += o[i];
		PUT("attn_residual", "token hidden", x, 2, hidden);
		tiny_norm(file, l, "post_attention_layernorm", h, x, T);
		PUT("mlp_norm", "token hidden", h, 2, hidden);
		tiny_linear(file, l, "mlp.gate_proj", gate, h, T, D, F);
		tiny_linear(file, l, "mlp.up_proj", up, h, T, D, F);
		PUT("gate_proj", "token ffn", gate, 2, ffn);
		PUT("up_proj", "token ffn", up, 2, ffn);
		for (i = 0; i < T * F; i++)
			gate[i] = (float)((double)gate[i] / (1 + exp(-(double)gate[i]))) * up[i];
		PUT("mlp_act", "token ffn", gate, 2, ffn);
		tiny_linear(file, l, "mlp.down_proj", o, gate, T, F, D);
		PUT("down_proj", "token hidden", o, 2, hidden);
		for (i = 0; i < T * D; i++)
			x[i] += o[i];
		PUT("output", "token hidden", x, 2, hidden);
	}
#undef PUT
	tiny_norm(file, -1, "norm", h, x, T);
	put(context, "final_norm", "token hidden", h, 2, hidden);
	tiny_linear(file, -1, "lm_head", logits, h, T, D, V);
	put(context, "logits", "token vocab", logits, 2, vocab);
	free(file);
	return 0;
}

#endif
