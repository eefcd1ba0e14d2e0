// fold.glsl: folds one number of each of LANES lanes over the workgroup.
//
// LANES / 8 lanes fold eight numbers each, then every lane folds their results:
// two barriers. The order depends on LANES alone, so a device repeats itself bit for
// bit. Calls may follow one another without a barrier between them.
shared float fold_one[LANES], fold_eight[LANES / 8];

float fold_sum(float x)
{
	const uint lane = gl_LocalInvocationID.x;
	float all = 0.0;

	fold_one[lane] = x;
	barrier();
	if (lane < LANES / 8) {
		[[unroll]] for (uint n = 0; n < 8; n++)
			all += fold_one[lane + n * (LANES / 8)];
		fold_eight[lane] = all;
	}
	barrier();
	all = fold_eight[0];
	[[unroll]] for (uint n = 1; n < LANES / 8; n++)
		all += fold_eight[n];
	return all;
}

float fold_max(float x)
{
	const uint lane = gl_LocalInvocationID.x;

	fold_one[lane] = x;
	barrier();
	if (lane < LANES / 8) {
		[[unroll]] for (uint n = 1; n < 8; n++)
			x = max(x, fold_one[lane + n * (LANES / 8)]);
		fold_eight[lane] = x;
	}
	barrier();
	x = fold_eight[0];
	[[unroll]] for (uint n = 1; n < LANES / 8; n++)
		x = max(x, fold_eight[n]);
	return x;
}
