/* The loops that numpy takes many passes for: no Python, no allocation, no input or output.

   Each function is the twin of a numpy function of the package, which defines it. Whatever is not
   plain is refused, and the twin then says what is wrong: so nothing here words an error, and only
   accepted input has to agree. All arithmetic on untrusted numbers is unsigned or bounded first. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

API int64_t lk_version(void) { return 8; } /* raised whenever a signature or meaning changes */

/* Of a number of one byte: the count that it stands for, and how many buckets it covers. */
#define COUNT(u) ((u) & 1 ? 0 : (u) >> 1)
#define COVERS(u) ((u) & 1 ? 1 + ((u) >> 1) : 1)
#define EIGHT(f, u) f(u), f(u + 1), f(u + 2), f(u + 3), f(u + 4), f(u + 5), f(u + 6), f(u + 7)
#define EACH(f)                                                                                    \
    EIGHT(f, 0), EIGHT(f, 8), EIGHT(f, 16), EIGHT(f, 24), EIGHT(f, 32), EIGHT(f, 40), EIGHT(f, 48), \
        EIGHT(f, 56), EIGHT(f, 64), EIGHT(f, 72), EIGHT(f, 80), EIGHT(f, 88), EIGHT(f, 96),        \
        EIGHT(f, 104), EIGHT(f, 112), EIGHT(f, 120)
static const uint8_t count_of[128] = {EACH(COUNT)}, covered_by[128] = {EACH(COVERS)};

/* One row of ZigZag LEB128-64b9B varints → their sum, and entries written, at most one per byte (none
   without `index`), or -1. Counts are added to those of their buckets, below `width`, too, unless it
   is 0. */
static inline int64_t decode_row(const uint8_t *p, const uint8_t *end, int64_t slots, int64_t *index,
                          int64_t *counts, uint64_t *sum, uint64_t *sums, int64_t width)
{
    int64_t at = 0, n = 0;
    uint64_t total = 0; /* cannot wrap: a count above 63 is added to less than 2**63 */
    if (slots < 0 || slots >> 40) return -1; /* and so no index overflows */
    while (p < end) {
        uint64_t u = *p++, half;
        if (u < 128) {
            int64_t count = count_of[u];
            if (index) { /* written whether it counts or not: no branch */
                index[n] = at;
                counts[n] = count;
                n += count != 0;
            }
            if (width) {
                if (at >= width) return -1;
                sums[at] += (uint64_t)count;
            }
            total += (uint64_t)count;
            at += covered_by[u];
            continue;
        }
        u &= 127;
        if (p < end && *p < 128) /* nearly all others have two bytes */
            u |= (uint64_t)*p++ << 7;
        else
            for (int shift = 7;; shift += 7) {
                if (p == end) return -1;
                uint64_t c = *p++;
                if (shift == 56) { /* the ninth byte has eight bits */
                    u |= c << 56;
                    break;
                }
                u |= (c & 127) << shift;
                if (c < 128) break;
            }
        half = u >> 1;
        if (u & 1) {
            if (half >= (uint64_t)slots) return -1;
            at += 1 + (int64_t)half;
        } else {
            if (half) {
                if (total > INT64_MAX || (total += half) > INT64_MAX) return -1;
                if (width) {
                    if (at >= width) return -1;
                    sums[at] += half;
                }
                if (index) {
                    index[n] = at;
                    counts[n++] = (int64_t)half;
                }
            }
            at++;
        }
        if (at > slots) return -1;
    }
    *sum = total;
    return at > slots || total > INT64_MAX ? -1 : n;
}

/* Rows of varints → CSR: data[size], begins[n], ends[n], slots[1 or n], indptr[n + 1], index and
   counts as long as all rows, or of no room, and then no entries are written; and sums[width] += what
   all rows have in each bucket. Returns the number of entries, or -1. */
API int64_t lk_rows(const uint8_t *data, int64_t size, const int64_t *begins, const int64_t *ends,
                    int64_t n, const int64_t *slots, int64_t each, int64_t *indptr, int64_t *index,
                    int64_t *counts, int64_t room, uint64_t *sums, int64_t width)
{
    int64_t done = indptr[0] = 0;
    uint64_t all = 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t begin = begins[r], end = ends[r], entries = -1;
        uint64_t sum = 0;
        if (begin < 0 || begin > end || end > size || (room && end - begin > room - done)) return -1;
        if (room) /* two calls, of which the compiler makes two loops */
            entries = decode_row(data + begin, data + end, slots[each ? r : 0], index + done,
                                 counts + done, &sum, sums, width);
        else
            entries = decode_row(data + begin, data + end, slots[each ? r : 0], 0, 0, &sum, sums,
                                 width);
        if (entries < 0 || (width && (all += sum) >> 62)) return -1;
        indptr[r + 1] = done += entries;
    }
    return done;
}

/* table[slots * columns] += counts of CSR rows: row r in line line[r], bucket i in column[i]. -1, and
   nothing added, where something is out of range, or where a double may not hold a row's sum. */
API int64_t lk_tabulate(double *table, int64_t slots, int64_t columns, const int64_t *line,
                        const int64_t *indptr, int64_t rows, const int64_t *index,
                        const int64_t *counts, int64_t entries, const int64_t *column,
                        int64_t width)
{
    uint64_t outside = 0, bits = 0;
    if (slots < 1 || columns < 1 || width < 0 || indptr[0] != 0 || indptr[rows] != entries) return -1;
    for (int64_t i = 0; i < width; i++) outside |= (uint64_t)column[i] >= (uint64_t)columns;
    for (int64_t r = 0; r < rows; r++)
        outside |= (uint64_t)line[r] >= (uint64_t)slots || indptr[r + 1] < indptr[r];
    for (int64_t i = 0; i < entries; i++) {
        outside |= (uint64_t)index[i] >= (uint64_t)width;
        bits |= (uint64_t)counts[i];
    }
    if (outside || bits >> 28 || entries >> 24) return -1;
    for (int64_t r = 0; r < rows; r++) {
        double *cells = table + line[r] * columns;
        for (int64_t i = indptr[r]; i < indptr[r + 1]; i++)
            cells[column[index[i]]] += (double)counts[i];
    }
    return 0;
}

/* The number of a float64's power of two (0 below 1) and the upper `half` bits of its mantissa;
   negative and not-a-number end up far above all others. */
static uint64_t fine_index(double value, int64_t half)
{
    uint64_t bits, bias = (uint64_t)1022 << half;
    memcpy(&bits, &value, 8);
    bits >>= 52 - half;
    return bits > bias ? bits - bias : 0;
}

/* table[width] += 1 at the fine index of each of n numbers, int64 (whole) or float64 times factor.
   Returns how many were counted: all, or up to some before the first that is not within the table.
   Tables of 32 bits are twice as fast as of 64; so n must be below 2**32. */
API int64_t lk_values(const void *values, int64_t n, int64_t whole, double factor, int64_t half,
                      uint32_t *table, int64_t width)
{
    const int64_t *integers = values;
    const double *reals = values;
    uint64_t size = (uint64_t)width;
    int64_t i = 0;
    if (half < 0 || half > 40 || width < 0 || width > (int64_t)64 << half || n >> 32) return 0;
    if (whole) {
        for (; i + 4 <= n; i += 4) {
            uint64_t at[4], outside = 0;
            for (int k = 0; k < 4; k++) { /* from 2**53 on a float64 could round up a power */
                at[k] = fine_index((double)integers[i + k], half);
                outside |= (at[k] >= size) | ((uint64_t)integers[i + k] >> 53);
            }
            if (outside) return i;
            for (int k = 0; k < 4; k++) table[at[k]]++;
        }
    } else {
        for (; i + 4 <= n; i += 4) {
            uint64_t at[4], outside = 0;
            for (int k = 0; k < 4; k++) {
                at[k] = fine_index(reals[i + k] * factor, half);
                outside |= at[k] >= size;
            }
            if (outside) return i;
            for (int k = 0; k < 4; k++) table[at[k]]++;
        }
    }
    return i;
}
