/* welch.c: see welch.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stat/welch.h"

#include <math.h>

/* The continued fraction of DLMF 8.17.22 by Lentz's method; x < (a + 1) / (a + b + 2). */
static double fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double terms[] = {even, odd};
        double step = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            h *= step;
        }
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return h;
}

/* I_x(a, b) */
static double incomplete_beta(double x, double a, double b)
{
    int sign;
    if (!(x > 0))
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * fraction(x, a, b) / a;
    return 1 - front * fraction(1 - x, b, a) / b;
}

double pt_student_quantile(double confidence, double df)
{
    /* P(|T| > t) = I_x(df / 2, 1 / 2) with x = df / (df + t^2), which falls with t. */
    double low = 0, high = 1;
    while (incomplete_beta(df / (df + high * high), df / 2, 0.5) > 1 - confidence && high < 1e12)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
        double t = (low + high) / 2;
        if (incomplete_beta(df / (df + t * t), df / 2, 0.5) > 1 - confidence)
            low = t;
        else
            high = t;
    }
    return (low + high) / 2;
}

static double mean_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

/* The variance of the mean. */
static double error_of(const double *v, size_t n, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return sum / (double)(n - 1) / (double)n;
}

bool pt_welch(const double *a, size_t na, const double *b, size_t nb, double confidence,
              struct pt_interval *out)
{
    double ma = na ? mean_of(a, na) : (double)NAN, mb = nb ? mean_of(b, nb) : (double)NAN;
    *out = (struct pt_interval){.low = (double)NAN, .middle = mb - ma, .high = (double)NAN};
    if (na < 2 || nb < 2)
        return false;
    double ea = error_of(a, na, ma), eb = error_of(b, nb, mb), all = ea + eb, half = 0;
    if (all > 0) {
        double df = all * all / (ea * ea / (double)(na - 1) + eb * eb / (double)(nb - 1));
        half = pt_student_quantile(confidence, df) * sqrt(all);
    }
    out->low = out->middle - half;
    out->high = out->middle + half;
    return true;
}
