// softmax_experiment.glsl: computes single scores and probabilities, in any form of vn_attn_form,
// for 128 lanes that share maxima and sums. A softmax over queries or heads computes the other
// scores again for each one, which is slow.

// q holds the queries of the call from `before` on; i may be negative.
float score(int i, uint h, uint j)
{
	const uint k = k_row(j, h), q = (uint(i + int(p.before)) * p.H + h) * p.K;
	float s = 0.0;

	for (uint d = 0; d < p.K && there(k); d++)
		s += float(p.q.v[q + d]) * k_of(k, d);
	return masked(uint(i), j, scaled(s));
}

// exp(s - top), or the experiment's version of it.
float weight(float s, float top)
{
	return p.form == VN_ATTN_NO_MAX_F16 ? as_half(exp_(s))
	       : p.form == VN_ATTN_NO_MAX ? exp_(s) : exp_(s - (top == -INFINITY ? 0.0 : top));
}

void join(inout float top, inout float sum, float s)
{
	const float most = p.form == VN_ATTN_NO_MAX || p.form == VN_ATTN_NO_MAX_F16 ? 0.0 : max(top, s);

	sum = sum * (top == most ? 1.0 : weight(top, most)) + weight(s, most);
	top = most;
}

// Sets tops[0] and sums[0] for query i of head h. Every lane must call this.
void row_sums(uint i, uint h)
{
	const uint lane = gl_LocalInvocationID.x;
	float top = -INFINITY, sum = 0.0;

	for (uint j = keys_begin(i) + lane; j < keys_end(i); j += LANES)
		join(top, sum, score(int(i), h, j));
	tops[lane] = top;
	sums[lane] = sum;
	barrier();
	for (uint k = LANES / 2; k > 0; k /= 2) {
		if (lane < k) {
			const float most = max(tops[lane], tops[lane + k]);
			sums[lane] = sums[lane] * (tops[lane] == most ? 1.0 : weight(tops[lane], most)) +
			             sums[lane + k] * (tops[lane + k] == most ? 1.0 : weight(tops[lane + k], most));
			tops[lane] = most;
		}
		barrier();
	}
}

float probability(uint i, uint h, uint j)
{
	const float s = score(int(i), h, j);
	float top = tops[0], sum;

	if (p.form == VN_ATTN_OVER_QUERIES || p.form == VN_ATTN_OVER_HEADS) {
		top = -INFINITY;
		sum = 0.0;
		if (p.form == VN_ATTN_OVER_HEADS)
			for (uint other = 0; other < p.H; other++)
				join(top, sum, score(int(i), other, j));
		else
			for (int other = -int(p.before); other < int(p.S - p.P); other++)
				if (visible(uint(other), j))
					join(top, sum, score(other, h, j));
	} else {
		sum = whole(sums[0], top == -INFINITY ? 0.0 : top);
	}
	const float y = weight(s, top) / sum;
	return p.form == VN_ATTN_PROBS_F16 ? as_half(y) : p.form == VN_ATTN_PROBS_BF16 ? as_bf16(y) : y;
}
