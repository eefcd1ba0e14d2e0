// fold_halves.glsl: sums one number of each of LANES lanes over the workgroup. The lanes fold in
// halves. The order depends on LANES alone, so a device repeats itself bit for bit.
shared float part[LANES];

float fold_sum(float mine)
{
	const uint lane = gl_LocalInvocationID.x;

	part[lane] = mine;
	barrier();
	for (uint k = LANES / 2; k > 0; k /= 2) {
		if (lane < k)
			part[lane] += part[lane + k];
		barrier();
	}
	const float all = part[0];
	barrier(); // part is written by the next fold
	return all;
}
