/* welch.h: how far two small samples differ: Welch's t interval, for samples of different variance.
 *
 * B. L. Welch, "The generalization of 'Student's' problem when several different population
 * variances are involved", Biometrika 34 (1947); degrees of freedom after Satterthwaite (1946).
 * Student's distribution by the regularized incomplete beta function (continued fraction, DLMF
 * 8.17.22).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_STAT_WELCH_H
#define PT_STAT_WELCH_H

#include <stdbool.h>
#include <stddef.h>

struct pt_interval {
    double low, middle, high;
};

/* The quantile of Student's t, two-sided: |t| is below it with probability `confidence` (0 to 1,
 * both excluded) at `df` > 0 degrees of freedom. */
double pt_student_quantile(double confidence, double df);

/* mean(b) - mean(a) and its interval. False when one of them has fewer than two values: nothing is
 * known of its noise, and only `middle` is set. Values that are all alike give an interval without
 * width. */
bool pt_welch(const double *a, size_t na, const double *b, size_t nb, double confidence,
              struct pt_interval *out);

#endif
