/* Wild calls of every function of the kernel, on buffers of exactly the size that it may touch;
   AddressSanitizer and UBSan (`python -m tests.fuzz kernel`) end the run at the first error.
   Usage: kernel RUNS SEED */
#include "../../latencykit/core/kernel.c"
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint64_t dice(void) /* xorshift64 */
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int64_t wild(void) { return (int64_t)(dice() >> dice() % 64) * (dice() % 8 ? 1 : -1); }

static void *buffer(int64_t items, size_t size) { return malloc(items ? (size_t)items * size : 1); }

/* Where `rows` rows lie in `size` items: mostly in order, at times anywhere. */
static void lie(int64_t *begins, int64_t *ends, int64_t rows, int64_t size)
{
    int64_t at = 0;
    for (int64_t r = 0; r < rows; r++) {
        begins[r] = dice() % 30 ? at + (dice() % 8 ? 0 : (int64_t)(dice() % 3)) : wild();
        at += (int64_t)(dice() % (uint64_t)(size - at + 1));
        ends[r] = dice() % 30 ? (r == rows - 1 && dice() % 2 ? size : at) : wild();
    }
}

/* Rows into a table of some lines and columns, at times of places that it does not have. */
static void tabulated(const int64_t *indptr, int64_t rows, const int64_t *index,
                      const int64_t *counts, int64_t entries, int64_t width)
{
    int64_t slots = (int64_t)(dice() % 4), columns = (int64_t)(dice() % 9);
    int64_t *line = buffer(rows, 8), *column = buffer(width, 8);
    double *table = calloc(slots * columns ? (size_t)(slots * columns) : 1, 8);
    for (int64_t i = 0; i < rows; i++)
        line[i] = slots && dice() % 50 ? (int64_t)(dice() % (uint64_t)slots) : wild();
    for (int64_t i = 0; i < width; i++)
        column[i] = columns ? (int64_t)(dice() % (uint64_t)columns) : wild();
    if (width && dice() % 9 == 0) column[dice() % (uint64_t)width] = wild();
    lk_tabulate(table, slots, columns, line, indptr, rows, index, counts, entries, column, width);
    free(line), free(column), free(table);
}

static long rows_and_tables(void)
{
    int64_t size = (int64_t)(dice() % (dice() % 8 ? 60 : 3)), rows = 1 + (int64_t)(dice() % 4);
    int64_t width = 0, each = dice() & 1;
    uint8_t *data = buffer(size, 1);
    int64_t *ends = buffer(rows, 8), *slots = buffer(each ? rows : 1, 8);
    int64_t *indptr = buffer(rows + 1, 8), *begins = buffer(rows, 8);
    int64_t *index = buffer(size, 8), *counts = buffer(size, 8), entries;
    int64_t summed;
    uint64_t mode = dice() % 5, *sums;
    for (int64_t i = 0; i < size; i++) {
        uint64_t x = dice(), y = x >> 8 & 15;
        data[i] = (uint8_t)(mode == 0 ? x : mode == 1 ? x & 127 : mode == 2 ? (y ? 255 : x)
                            : mode == 3 ? (y & 1 ? x | 128 : x & 127) : (y & 7 ? 255 : 254));
    }
    lie(begins, ends, rows, size);
    for (int64_t i = 0; i < (each ? rows : 1); i++)
        slots[i] = dice() % 3 ? 1 + (int64_t)(dice() % 5000) : wild();
    summed = dice() % 2 ? 0 : (int64_t)(dice() % 300);
    sums = calloc(summed ? (size_t)summed : 1, 8);
    entries = lk_rows(data, size, begins, ends, rows, slots, each, indptr, index, counts, size,
                      sums, summed);
    if (entries >= 0 && summed) {
        int64_t left = 0;
        int64_t *none = buffer(rows + 1, 8); /* what can be decoded can be summed alone */
        if (lk_rows(data, size, begins, ends, rows, slots, each, none, 0, 0, 0, sums, summed)) abort();
        free(none);
        for (int64_t i = 0; i < entries; i++) sums[index[i]] -= 2 * (uint64_t)counts[i];
        for (int64_t i = 0; i < summed; i++) left |= (int64_t)sums[i];
        if (left) abort(); /* the sums are those of the entries */
    }
    for (int64_t i = 0; i < entries; i++)
        if (index[i] >= width) width = index[i] + 1;
    if (entries >= 0 && width < 100000) {
        tabulated(indptr, rows, index, counts, entries, width);
        if (entries) index[dice() % (uint64_t)entries] = wild();
        tabulated(indptr, rows, index, counts, entries, width);
        if (entries) counts[dice() % (uint64_t)entries] = wild();
        indptr[dice() % (uint64_t)(rows + 1)] = wild();
        tabulated(indptr, rows, index, counts, entries, width);
    }
    free(data), free(ends), free(slots), free(indptr), free(index), free(counts), free(begins);
    free(sums);
    return entries >= 0;
}

static long plain_values(void)
{
    int64_t n = (int64_t)(dice() % 12), half = dice() % 20 ? (int64_t)(dice() % 8) : wild();
    int64_t width = (int64_t)(dice() % 300), *values = buffer(n, 8);
    uint32_t *table;
    double factor = dice() % 2 ? 1.0 : (double)wild();
    long counted;
    if (dice() % 3 && half >= 0 && half < 8) width = (int64_t)64 << half;
    table = calloc(width ? (size_t)width : 1, 4);
    for (int64_t i = 0; i < n; i++) values[i] = wild();
    counted = (long)lk_values(values, n, (int64_t)(dice() & 1), factor, half, table, width);
    free(values), free(table);
    return counted > 0;
}

int main(int argc, char **argv)
{
    long runs = argc > 1 ? atol(argv[1]) : 1000000, accepted = 0;
    state = 88172645463325252ULL + (argc > 2 ? (uint64_t)atol(argv[2]) * 7919 : 0);
    for (long run = 0; run < runs; run++)
        accepted += run % 2 ? rows_and_tables() : plain_values();
    printf("%ld wild calls, %ld accepted, no report\n", runs, accepted);
    return 0;
}
