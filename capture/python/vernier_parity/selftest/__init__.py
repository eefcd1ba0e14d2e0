"""selftest: can a comparison fail? `python -m vernier_parity selftest [REF [CAND]]` makes mistakes in copies of correct
recordings, each of which `vernier compare` must find.

A mutation changes a copy of the candidate (or of the reference, or both) as one known kind of mistake would, and states
what the comparison must find: the exit status; the status and metric of the changed checkpoint; that it is the first
divergence and the only one; or by what a comparison is refused. Anything else is MISSED. The tables are in `mutations`,
one file per kind.

These changes are left out, because the result is, or may be, a correct recording:
  - claims that no verdict depends on: a wrong digest or wrong statistics of numbers that are within their limits,
    because the numbers are judged, not the claims. The digest of a tensor outside its limits is checked, and has a
    mutation here; `vernier show --check` checks all;
  - a change below the rounding of the format (the last bit of one number, one row of logits whose argmax is a tie, a
    subnormal made zero);
  - numbers kept in a wider format than the run's (dumps often are), or the same numbers compressed, in chunks, or with
    fewer second names;
  - a run that claims a coarser precision, if no floor is known: its limits are wider, and it is within them;
  - a rounding smaller than the error of the run's own sums: of an f16-acc16 run, to bfloat16; of a bfloat16 run, to any
    format of as many bits;
  - text that decides nothing: created, tool, command, provenance.

Name maps, shards of ranks, rows of a batch and paged caches are resolved before a comparison begins, and are not tested
here.
"""
