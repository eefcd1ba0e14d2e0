/* bench_gpu.c: milliseconds of a forward pass on a Vulkan device.
 *
 *   bench_gpu MODEL [PRECISION [ROUNDS [TOKENS...]]]      default: f16, 5 rounds, 128 512 2048 tokens and 1 after each
 *
 * Per number of tokens: the device's own time (first timestamp to last) and the
 * wall time of the call, medians, without taps; the milliseconds of each
 * operation; and one decoding step after the prompt. */
#include "libgpu/gpu.h"
#include "libref/base/progress.h"
#include "libref/model/model.h"
#include "tests/median.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROUNDS = 31 };

static void fail(const vn_error *err)
{
	fprintf(stderr, "bench_gpu: %s\n", err->text);
	exit(2);
}

static void measure(vn_gpu *g, const vn_plan *p, int64_t T, int rounds)
{
	double   device[MAX_ROUNDS], wall[MAX_ROUNDS], step[MAX_ROUNDS], by_op[VN_N_OPS] = { 0 };
	int32_t *ids = malloc((size_t)T * sizeof *ids), next = 7;
	vn_error err = { "" };

	if (!ids)
		exit(2);
	for (int64_t t = 0; t < T; t++)
		ids[t] = (int32_t)((t * 7919 + 13) % p->vocab);
	for (int i = -1; i < rounds; i++) { /* the first warms up */
		vn_gpu_reset(g);
		double start = vn_seconds();
		if (vn_gpu_forward(g, ids, T, NULL, &err))
			fail(&err);
		double        took = vn_seconds() - start, ms = 0;
		const double *node = vn_gpu_node_ms(g, &ms);
		if (i >= 0) {
			wall[i] = took * 1e3;
			device[i] = ms;
			for (int n = 0; node && n < p->n_nodes; n++)
				by_op[p->node[n].op] += node[n] / rounds;
		}
		start = vn_seconds();
		if (T < p->context && vn_gpu_forward(g, &next, 1, NULL, &err))
			fail(&err);
		if (i >= 0)
			step[i] = (vn_seconds() - start) * 1e3;
	}
	printf("%5lld tokens: %8.2f ms on the device, %8.2f ms wall; then one token %.2f ms wall; of the device's:", (long long)T,
	       median(device, rounds), median(wall, rounds), median(step, rounds));
	for (int op = 0; op < VN_N_OPS; op++)
		if (by_op[op] > 0)
			printf(" %s %.2f", vn_op_name((vn_op)op), by_op[op]);
	putchar('\n');
	free(ids);
}

int main(int argc, char **argv)
{
	vn_error       err = { "" };
	vn_model      *m;
	vn_gpu        *g;
	vn_gpu_options o = { .policy = { VN_F16, VN_F32, 0 }, .device = -1 };
	vn_facts       facts = { 0 };
	int            rounds = argc > 3 ? atoi(argv[3]) : 5;

	if (argc < 2 || (argc > 2 && !vn_policy_from_name(argv[2], &o.policy))) {
		fprintf(stderr, "usage: bench_gpu MODEL [PRECISION [ROUNDS [TOKENS...]]]\n");
		return 2;
	}
	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	if (vn_model_open(argv[1], &m, &err) || vn_gpu_create(vn_model_plan(m), vn_model_weights(m), &o, &g, &err))
		fail(&err);
	vn_gpu_facts(g, &facts);
	printf("%s on %s, %s\n", argv[1], vn_facts_get(&facts, "device"), vn_policy_name(o.policy));
	if (argc > 4)
		for (int i = 4; i < argc; i++)
			measure(g, vn_model_plan(m), atol(argv[i]), rounds);
	else
		for (int i = 0; i < 3; i++)
			measure(g, vn_model_plan(m), (const int64_t[]){ 128, 512, 2048 }[i], rounds);
	vn_gpu_destroy(g);
	vn_model_close(m);
	return 0;
}
