/* kernel_plain.c: the loops of kernel_body.inc for any processor. */
#define TARGET
#define KERNEL      vn_metric_kernel_plain
#define KERNEL_NAME "plain"
#include "compare/metrics/kernel_body.inc"
