// The loops of `stagewise.simulation.cpu` as one would write them in C++ for a single problem: no checks, no records, the
// safe action at zero, one constraint, the mixture radius. Compiled on the spot by witness.py with -O3 -march=native.
// Random numbers are those of the library (Philox4x32-10, Wichura's AS 241), so that the regrets can be compared.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr double TIE = 1e-9;
constexpr std::uint64_t WORD = 0xFFFFFFFFu;
enum Stream { OUTCOME = 0, ACTIONS = 1, POLICY = 2 };

struct Pair {
    double even, odd;
};

inline double open_unit(std::uint64_t high, std::uint64_t low) {
    return double(std::int64_t((high << 21) | (low >> 11) | 1)) * 0x1p-53;
}

inline Pair uniform_pair(std::uint64_t seed, std::uint32_t run, std::uint32_t round, std::uint32_t stream,
                         std::uint32_t pair) {
    std::uint32_t a = pair, b = stream, c = round, d = run;
    std::uint32_t k = std::uint32_t(seed & WORD), l = std::uint32_t(seed >> 32);
    for (int i = 0; i < 10; ++i) {
        const std::uint64_t p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = std::uint32_t(q >> 32) ^ b ^ k;
        b = std::uint32_t(q);
        c = std::uint32_t(p >> 32) ^ d ^ l;
        d = std::uint32_t(p);
        k += 0x9E3779B9u;
        l += 0xBB67AE85u;
    }
    return {open_unit(a, b), open_unit(c, d)};
}

inline double polynomial(const double (&c)[8], double x) {
    const double s = x * x;
    const double lower = c[0] + c[1] * x + (c[2] + c[3] * x) * s;
    const double upper = c[4] + c[5] * x + (c[6] + c[7] * x) * s;
    return lower + upper * (s * s);
}

constexpr double CN[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                          1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                          3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double CD[8] = {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
                          2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
                          5.2264952788528545610e3};
constexpr double TN[8] = {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                          3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double TD[8] = {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                          1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
constexpr double FN[8] = {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double FD[8] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
                          7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                          2.04426310338993978564e-15};

inline double quantile(double p) {
    const double q = p - 0.5;
    if (std::fabs(q) <= 0.425) {
        const double r = 0.425 * 0.425 - q * q;
        return q * polynomial(CN, r) / polynomial(CD, r);
    }
    const double r = std::sqrt(-std::log(std::min(p, 1.0 - p)));
    const double size = r <= 5.0 ? polynomial(TN, r - 1.6) / polynomial(TD, r - 1.6)
                                 : polynomial(FN, r - 5.0) / polynomial(FD, r - 5.0);
    return std::copysign(size, q);
}

inline void fill_normal(double* out, int count, std::uint64_t seed, std::uint32_t run, std::uint32_t round,
                        std::uint32_t stream) {
    for (int pair = 0; 2 * pair < count; ++pair) {
        const Pair u = uniform_pair(seed, run, round, stream, pair);
        out[2 * pair] = quantile(u.even);
        if (2 * pair + 1 < count) out[2 * pair + 1] = quantile(u.odd);
    }
}

inline int first_best(const double* values, int count) {
    double best = values[0];
    for (int i = 1; i < count; ++i) best = std::max(best, values[i]);
    const double floor = best - TIE * std::fabs(best);
    for (int i = 0; i < count; ++i)
        if (values[i] >= floor) return i;
    return 0;
}

inline double safe_step(double slope, double slack) { return slope <= slack ? 1.0 : slack / slope; }

inline double dot(const double* a, const double* b, int n) {
    double total = 0.0;
    for (int i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

// The best mixture under one limit, safe action at (0, 0): raise the price of room until a cheap and a dear action tie.
struct Mix {
    int cheap, dear;
    double share;
};

inline Mix best_pair(const double* reward, const double* cost, int count, double limit) {
    int cheap = -1, dear = -1, best_cheap = -1, best_dear = -1;
    double price = 0.0, value = -std::numeric_limits<double>::infinity();
    for (int turn = 0;; ++turn) {
        double best = price * limit;
        for (int i = 0; i < count; ++i) best = std::max(best, reward[i] + price * (limit - cost[i]));
        const double floor = best - TIE * std::fabs(best);
        int c = -2, d = -2;
        for (int i = 0; i < count; ++i)
            if (reward[i] + price * (limit - cost[i]) >= floor) {
                if (cost[i] > limit) {
                    if (d < 0) d = i;
                } else if (c < 0)
                    c = i;
                if (c >= 0 && d >= 0) break;
            }
        if (c == -2 && price * limit >= floor) c = -1;
        if (turn == 0) {
            if (c != -2) return {c, c, 0.0};
            cheap = -1;
            dear = d;
        } else {
            if (c != -2 && d != -2) {
                best_cheap = c;
                best_dear = d;
                break;
            }
            if (c != -2) cheap = c;
            if (d != -2) dear = d;
        }
        const double cr = cheap < 0 ? 0.0 : reward[cheap], cc = cheap < 0 ? 0.0 : cost[cheap];
        price = (reward[dear] - cr) / (cost[dear] - cc);
        const double crossing = cr + price * (limit - cc);
        if (!(crossing > value)) break;
        value = crossing;
        best_cheap = cheap;
        best_dear = dear;
    }
    const double cc = best_cheap < 0 ? 0.0 : cost[best_cheap];
    return {best_cheap, best_dear, (limit - cc) / (cost[best_dear] - cc)};
}

}  // namespace

extern "C" {

// LC-LUCB on fixed rays, by the Gram matrix G = X V⁻¹ Xᵀ and the estimates at the rays.
double lc_lucb_fixed(const double* x, int count, int d, const double* theta, const double* mu, double noise,
                     double threshold, double delta, long rounds, std::uint64_t seed) {
    std::vector<double> gram(count * count), p(count), q(count), hoped(count), steps(count), g(count), tr(count),
        tc(count);
    double best = 0.0;
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < count; ++j) gram[i * count + j] = dot(x + i * d, x + j * d, d);
        tr[i] = dot(x + i * d, theta, d);
        tc[i] = dot(x + i * d, mu, d);
        best = std::max(best, safe_step(tc[i], threshold) * tr[i]);
    }
    const double confidence = 2.0 * std::log(2.0 / delta);
    double log_det = 0.0, regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        const double beta = std::sqrt(noise * noise * (log_det + confidence) + 1.0);
        const double bonus = beta + 2.0 / threshold * beta;
        for (int i = 0; i < count; ++i) {
            const double width = std::sqrt(gram[i * count + i]);
            steps[i] = safe_step(std::min(q[i] + beta * width, 1.0), threshold);
            hoped[i] = steps[i] * (p[i] + bonus * width);
        }
        const int ray = first_best(hoped.data(), count);
        const double step = hoped[ray] < 0.0 ? 0.0 : steps[ray];
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        regret += best - step * tr[ray];
        const double* column = &gram[ray * count];
        const double denominator = 1.0 + step * step * column[ray];
        const double er = (step * tr[ray] + noise * quantile(u.even) - step * p[ray]) / denominator;
        const double ec = (step * tc[ray] + noise * quantile(u.odd) - step * q[ray]) / denominator;
        for (int i = 0; i < count; ++i) g[i] = step * column[i];
        for (int i = 0; i < count; ++i) {
            p[i] += g[i] * er;
            q[i] += g[i] * ec;
            const double share = g[i] / denominator;
            for (int j = 0; j < count; ++j) gram[i * count + j] -= share * g[j];
        }
        log_det += std::log(denominator);
    }
    return regret;
}

// The same by the columns b = Tx of every ray, with V⁻¹ = TᵀT, moved by Carlson's rank-one update: what the library keeps,
// since the Gram matrix drifts (benchmarks/drift.py).
double lc_lucb_fixed_root(const double* x, int count, int d, const double* theta, const double* mu, double noise,
                          double threshold, double delta, long rounds, std::uint64_t seed) {
    std::vector<double> b(count * d), p(count), q(count), hoped(count), steps(count), g(count), tr(count), tc(count),
        f(d), forms(count);
    double best = 0.0;
    for (int i = 0; i < count; ++i) {
        for (int k = 0; k < d; ++k) b[k * count + i] = x[i * d + k];
        forms[i] = dot(x + i * d, x + i * d, d);
        tr[i] = dot(x + i * d, theta, d);
        tc[i] = dot(x + i * d, mu, d);
        best = std::max(best, safe_step(tc[i], threshold) * tr[i]);
    }
    const double confidence = 2.0 * std::log(2.0 / delta);
    double log_det = 0.0, regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        const double beta = std::sqrt(noise * noise * (log_det + confidence) + 1.0);
        const double bonus = beta + 2.0 / threshold * beta;
        for (int i = 0; i < count; ++i) {
            const double width = std::sqrt(forms[i]);
            steps[i] = safe_step(std::min(q[i] + beta * width, 1.0), threshold);
            hoped[i] = steps[i] * (p[i] + bonus * width);
        }
        const int ray = first_best(hoped.data(), count);
        const double step = hoped[ray] < 0.0 ? 0.0 : steps[ray];
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        regret += best - step * tr[ray];
        for (int k = 0; k < d; ++k) f[k] = step * b[k * count + ray];
        std::fill(g.begin(), g.end(), 0.0);
        std::fill(forms.begin(), forms.end(), 0.0);
        double before = 1.0;
        for (int k = 0; k < d; ++k) {
            const double after = before + f[k] * f[k], scale = 1.0 / std::sqrt(before * after);
            const double keep = before * scale, give = f[k] * scale, length = f[k];
            double* column = &b[k * count];
            for (int i = 0; i < count; ++i) {
                const double old = column[i], moved = old * keep - g[i] * give;
                column[i] = moved;
                g[i] += length * old;
                forms[i] += moved * moved;
            }
            before = after;
        }
        const double er = (step * tr[ray] + noise * quantile(u.even) - step * p[ray]) / before;
        const double ec = (step * tc[ray] + noise * quantile(u.odd) - step * q[ray]) / before;
        for (int i = 0; i < count; ++i) {
            p[i] += g[i] * er;
            q[i] += g[i] * ec;
        }
        log_det += std::log(before);
    }
    return regret;
}

// LC-LUCB on rays drawn anew every round, by a triangular root of V⁻¹.
double lc_lucb_fresh(const double*, int count, int d, const double* theta, const double* mu, double noise,
                     double threshold, double delta, long rounds, std::uint64_t seed) {
    std::vector<double> x(count * d), root(d * d), r(d), c(d), hoped(count), steps(count), z(d), f(d), g(d);
    for (int i = 0; i < d; ++i) root[i * d + i] = 1.0;
    const double confidence = 2.0 * std::log(2.0 / delta);
    double log_det = 0.0, regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        fill_normal(x.data(), count * d, seed, 0, t, ACTIONS);
        double best = 0.0;
        const double beta = std::sqrt(noise * noise * (log_det + confidence) + 1.0);
        const double bonus = beta + 2.0 / threshold * beta;
        for (int i = 0; i < count; ++i) {
            double* row = &x[i * d];
            const double size = 1.0 / std::sqrt(dot(row, row, d));
            for (int j = 0; j < d; ++j) row[j] *= size;
            best = std::max(best, safe_step(dot(row, mu, d), threshold) * dot(row, theta, d));
            double form = 0.0;
            for (int k = 0; k < d; ++k) {
                const double entry = dot(&root[k * d], row, k + 1);
                form += entry * entry;
            }
            const double width = std::sqrt(form);
            steps[i] = safe_step(std::min(dot(row, c.data(), d) + beta * width, 1.0), threshold);
            hoped[i] = steps[i] * (dot(row, r.data(), d) + bonus * width);
        }
        const int ray = first_best(hoped.data(), count);
        const double step = hoped[ray] < 0.0 ? 0.0 : steps[ray];
        for (int j = 0; j < d; ++j) z[j] = step * x[ray * d + j];
        const double mr = dot(z.data(), theta, d), mc = dot(z.data(), mu, d);
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        regret += best - mr;
        for (int i = 0; i < d; ++i) f[i] = dot(&root[i * d], z.data(), i + 1);
        std::fill(g.begin(), g.end(), 0.0);
        double before = 1.0;
        for (int i = 0; i < d; ++i) {
            const double after = before + f[i] * f[i], scale = 1.0 / std::sqrt(before * after);
            const double keep = before * scale, give = f[i] * scale;
            double* row = &root[i * d];
            for (int j = 0; j <= i; ++j) {
                const double old = row[j];
                row[j] = old * keep - g[j] * give;
                g[j] += f[i] * old;
            }
            before = after;
        }
        const double er = (mr + noise * quantile(u.even) - dot(r.data(), z.data(), d)) / before;
        const double ec = (mc + noise * quantile(u.odd) - dot(c.data(), z.data(), d)) / before;
        for (int j = 0; j < d; ++j) {
            r[j] += g[j] * er;
            c[j] += g[j] * ec;
        }
        log_det += std::log(before);
    }
    return regret;
}

// Safe-LTS on fixed rays: the columns b = Tx of every ray, moved by Carlson's rank-one update.
double safe_lts_fixed(const double* x, int count, int d, const double* theta, const double* mu, double noise,
                      double threshold, double delta, long rounds, std::uint64_t seed) {
    std::vector<double> b(count * d), p(count), q(count), hoped(count), steps(count), g(count), tr(count), tc(count),
        eta(d), f(d), widths(count), sample(count);
    double best = 0.0;
    for (int i = 0; i < count; ++i) {
        for (int k = 0; k < d; ++k) b[k * count + i] = x[i * d + k];
        tr[i] = dot(x + i * d, theta, d);
        tc[i] = dot(x + i * d, mu, d);
        best = std::max(best, safe_step(tc[i], threshold) * tr[i]);
    }
    const double confidence = 2.0 * std::log(2.0 / delta), inflation = 1.0 + 2.0 / threshold;
    double log_det = 0.0, regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        const double beta = std::sqrt(noise * noise * (log_det + confidence) + 1.0);
        fill_normal(eta.data(), d, seed, 0, t, POLICY);
        std::fill(widths.begin(), widths.end(), 0.0);
        std::copy(p.begin(), p.end(), sample.begin());
        for (int k = 0; k < d; ++k) {
            const double factor = beta * inflation * eta[k];
            const double* column = &b[k * count];
            for (int i = 0; i < count; ++i) {
                widths[i] += column[i] * column[i];
                sample[i] += column[i] * factor;
            }
        }
        for (int i = 0; i < count; ++i) {
            steps[i] = safe_step(std::min(q[i] + beta * std::sqrt(widths[i]), 1.0), threshold);
            hoped[i] = steps[i] * sample[i];
        }
        const int ray = first_best(hoped.data(), count);
        const double step = hoped[ray] < 0.0 ? 0.0 : steps[ray];
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        regret += best - step * tr[ray];
        for (int k = 0; k < d; ++k) f[k] = step * b[k * count + ray];
        std::fill(g.begin(), g.end(), 0.0);
        double before = 1.0;
        for (int k = 0; k < d; ++k) {
            const double after = before + f[k] * f[k], scale = 1.0 / std::sqrt(before * after);
            const double keep = before * scale, give = f[k] * scale, length = f[k];
            double* column = &b[k * count];
            for (int i = 0; i < count; ++i) {
                const double old = column[i];
                column[i] = old * keep - g[i] * give;
                g[i] += length * old;
            }
            before = after;
        }
        const double er = (step * tr[ray] + noise * quantile(u.even) - step * p[ray]) / before;
        const double ec = (step * tc[ray] + noise * quantile(u.odd) - step * q[ray]) / before;
        for (int i = 0; i < count; ++i) {
            p[i] += g[i] * er;
            q[i] += g[i] * ec;
        }
        log_det += std::log(before);
    }
    return regret;
}

// OPLB on a fixed finite set, by the Gram matrix.
double oplb_fixed(const double* x, int count, int d, const double* theta, const double* mu, double noise,
                  double threshold, double delta, long rounds, std::uint64_t seed) {
    std::vector<double> gram(count * count), p(count), q(count), hoped(count), dearest(count), tr(count), tc(count),
        g(count);
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < count; ++j) gram[i * count + j] = dot(x + i * d, x + j * d, d);
        tr[i] = dot(x + i * d, theta, d);
        tc[i] = dot(x + i * d, mu, d);
    }
    const Mix ideal = best_pair(tr.data(), tc.data(), count, threshold);
    auto value = [](const Mix& mix, const std::vector<double>& of) {
        return (mix.cheap < 0 ? 0.0 : (1.0 - mix.share) * of[mix.cheap]) + (mix.dear < 0 ? 0.0 : mix.share * of[mix.dear]);
    };
    const double best = value(ideal, tr), confidence = 2.0 * std::log(2.0 / delta);
    double log_det = 0.0, regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        const double beta = std::sqrt(noise * noise * (log_det + confidence) + 1.0);
        const double bonus = beta + 2.0 / threshold * beta;
        for (int i = 0; i < count; ++i) {
            const double width = std::sqrt(gram[i * count + i]);
            dearest[i] = std::min(q[i] + beta * width, 1.0);
            hoped[i] = p[i] + bonus * width;
        }
        const Mix mix = best_pair(hoped.data(), dearest.data(), count, threshold);
        regret += best - value(mix, tr);
        const double lottery = uniform_pair(seed, 0, t, POLICY, 0).even;
        const int action = lottery < 1.0 - mix.share ? mix.cheap : mix.dear;
        if (action < 0) continue;
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        const double* column = &gram[action * count];
        const double denominator = 1.0 + column[action];
        const double er = (tr[action] + noise * quantile(u.even) - p[action]) / denominator;
        const double ec = (tc[action] + noise * quantile(u.odd) - q[action]) / denominator;
        for (int i = 0; i < count; ++i) g[i] = column[i];
        for (int i = 0; i < count; ++i) {
            p[i] += g[i] * er;
            q[i] += g[i] * ec;
            const double share = g[i] / denominator;
            for (int j = 0; j < count; ++j) gram[i * count + j] -= share * g[j];
        }
        log_det += std::log(denominator);
    }
    return regret;
}

// OPB with Bernoulli outcomes; arm 0 is safe, worth (reward[0], 0). The radius is Robbins' normal mixture at R = 1/2.
double opb(const double* reward, const double* cost, int count, double threshold, double log_confidence, double blind,
           long rounds, std::uint64_t seed) {
    std::vector<double> pulls(count), widths(count), p(count), q(count), hoped(count), dearest(count), tr(count);
    auto radius = [&](double n) {
        n = std::max(n, 1.0);
        return std::sqrt((1.0 + 1.0 / n) * (std::log1p(n) + 2.0 * log_confidence) / n);
    };
    const double base = reward[0];
    for (int i = 0; i < count; ++i) {
        widths[i] = std::max(radius(0.0), blind);
        tr[i] = reward[i] - base;
    }
    auto value = [](const Mix& mix, const double* of) {
        return (mix.cheap < 0 ? 0.0 : (1.0 - mix.share) * of[mix.cheap]) + (mix.dear < 0 ? 0.0 : mix.share * of[mix.dear]);
    };
    const double best = value(best_pair(tr.data(), cost, count, threshold), tr.data());
    const double bonus = 0.5 + 2.0 * (1.0 - base) / threshold * 0.5;
    double regret = 0.0;
    for (long t = 0; t < rounds; ++t) {
        for (int i = 0; i < count; ++i) {
            hoped[i] = p[i] + bonus * widths[i] - base;
            dearest[i] = std::min(q[i] + 0.5 * widths[i], 1.0);
        }
        hoped[0] = -std::numeric_limits<double>::infinity();
        const Mix mix = best_pair(hoped.data(), dearest.data(), count, threshold);
        regret += best - value(mix, tr.data());
        const double lottery = uniform_pair(seed, 0, t, POLICY, 0).even;
        int arm = lottery < 1.0 - mix.share ? mix.cheap : mix.dear;
        arm = arm < 0 ? 0 : arm;
        const Pair u = uniform_pair(seed, 0, t, OUTCOME, 0);
        pulls[arm] += 1.0;
        widths[arm] = radius(pulls[arm]);
        p[arm] += (double(u.even < reward[arm]) - p[arm]) / pulls[arm];
        q[arm] += (double(u.odd < cost[arm]) - q[arm]) / pulls[arm];
    }
    return regret;
}
}
