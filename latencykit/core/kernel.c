/* The loops that numpy takes many passes for: no Python, no allocation, no input or output.

   Each function is the twin of a numpy function of the package, which defines it (lk_table that of
   pandas' parser). Whatever is not plain is refused, and the twin then says what is wrong: so nothing
   here words an error, and only accepted input has to agree. All arithmetic on untrusted numbers is unsigned or bounded first. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

API int64_t lk_version(void) { return 5; } /* raised whenever a signature or meaning changes */

/* Of a number of one byte: the count that it stands for, and how many buckets it covers. */
#define COUNT(u) ((u) & 1 ? 0 : (u) >> 1)
#define COVERS(u) ((u) & 1 ? 1 + ((u) >> 1) : 1)
#define EIGHT(f, u) f(u), f(u + 1), f(u + 2), f(u + 3), f(u + 4), f(u + 5), f(u + 6), f(u + 7)
#define EACH(f)                                                                                    \
    EIGHT(f, 0), EIGHT(f, 8), EIGHT(f, 16), EIGHT(f, 24), EIGHT(f, 32), EIGHT(f, 40), EIGHT(f, 48), \
        EIGHT(f, 56), EIGHT(f, 64), EIGHT(f, 72), EIGHT(f, 80), EIGHT(f, 88), EIGHT(f, 96),        \
        EIGHT(f, 104), EIGHT(f, 112), EIGHT(f, 120)
static const uint8_t count_of[128] = {EACH(COUNT)}, covered_by[128] = {EACH(COVERS)};

/* One row of ZigZag LEB128-64b9B varints → their sum, and entries written, at most one per byte, or
   -1. */
static int64_t decode_row(const uint8_t *p, const uint8_t *end, int64_t slots, int64_t *index,
                          int64_t *counts, uint64_t *sum)
{
    int64_t at = 0, n = 0;
    uint64_t total = 0; /* cannot wrap: a count above 63 is added to less than 2**63 */
    if (slots < 0 || slots >> 40) return -1; /* and so no index overflows */
    while (p < end) {
        uint64_t u = *p++, half;
        if (u < 128) {
            int64_t count = count_of[u];
            index[n] = at; /* written whether it counts or not: no branch */
            counts[n] = count;
            n += count != 0;
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
                index[n] = at;
                counts[n++] = (int64_t)half;
            }
            at++;
        }
        if (at > slots) return -1;
    }
    *sum = total;
    return at > slots || total > INT64_MAX ? -1 : n;
}

/* Rows of varints → CSR: data[size], begins[n], ends[n], slots[1 or n], indptr[n + 1], index and
   counts as long as all rows. Returns the number of entries, or -1. */
API int64_t lk_rows(const uint8_t *data, int64_t size, const int64_t *begins, const int64_t *ends,
                    int64_t n, const int64_t *slots, int64_t each, int64_t *indptr, int64_t *index,
                    int64_t *counts, int64_t room)
{
    int64_t done = indptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t begin = begins[r], end = ends[r], entries = -1;
        uint64_t sum;
        if (begin >= 0 && begin <= end && end <= size && end - begin <= room - done)
            entries = decode_row(data + begin, data + end, slots[each ? r : 0], index + done,
                                 counts + done, &sum);
        if (entries < 0) return -1;
        indptr[r + 1] = done += entries;
    }
    return done;
}

/* total[width] += counts[n] at index[n]; -1, and nothing added, where an index is out of range. */
API int64_t lk_add(int64_t *total, int64_t width, const int64_t *index, const int64_t *counts,
                   int64_t n)
{
    uint64_t outside = 0, last = (uint64_t)width - 1; /* the sign of an index, or of last - index */
    if (n > 0 && width < 1) return -1;
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)index[i] | (last - (uint64_t)index[i]);
    if (outside >> 63) return -1;
    for (int64_t i = 0; i < n; i++) /* wraps, as numpy does */
        total[index[i]] = (int64_t)((uint64_t)total[index[i]] + (uint64_t)counts[i]);
    return 0;
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

static uint64_t sum_of(const int64_t *counts, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t)counts[i];
    return sum;
}

/* The entries of a row's lowest and highest value and of p percentiles, given as
   AbstractHistogram.getValueAtPercentile lowers them: places[2 + p], each -1 if the sum is 0. */
static int64_t places_of(const int64_t *counts, int64_t entries, uint64_t sum, const double *below,
                         int64_t p, int64_t *places)
{
    enum { STRIDE = 16 };
    int64_t at = 0;
    uint64_t reached = 0, part;
    places[0] = sum ? 0 : -1;
    places[1] = sum ? entries - 1 : -1;
    for (int64_t k = 0; k < p; k++) {
        double rank = below[k] * (double)(int64_t)sum / 100.0;
        if (!(rank >= 0 && rank <= (double)(int64_t)sum)) return -1;
        uint64_t wanted = (uint64_t)rank;
        wanted += (double)wanted < rank; /* rounded up */
        wanted += wanted == 0;
        if (k && below[k] < below[k - 1]) at = 0, reached = 0;
        while (entries - at >= STRIDE && reached + (part = sum_of(counts + at, STRIDE)) < wanted)
            reached += part, at += STRIDE;
        while (at < entries && reached + (uint64_t)counts[at] < wanted)
            reached += (uint64_t)counts[at++];
        places[2 + k] = sum ? (at < entries ? at : entries - 1) : -1;
    }
    return 0;
}

/* Sum of each CSR row and its `places_of`: sums[rows], places[rows * (2 + p)]. -1 where indptr does
   not ascend within `entries`, or where the sum of all could exceed 2**62. */
API int64_t lk_places(const int64_t *indptr, int64_t rows, const int64_t *counts, int64_t entries,
                      const double *below, int64_t p, int64_t *sums, int64_t *places)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < entries; i++) bits |= (uint64_t)counts[i];
    if (indptr[0] != 0 || bits >> 38 || entries >> 24) return -1;
    for (int64_t r = 0; r < rows; r++, places += 2 + p) {
        int64_t begin = indptr[r], end = indptr[r + 1];
        uint64_t sum;
        if (end < begin || end > entries) return -1;
        sum = sum_of(counts + begin, end - begin);
        sums[r] = (int64_t)sum;
        if (places_of(counts + begin, end - begin, sum, below, p, places)) return -1;
        for (int64_t k = 0; k < 2 + p; k++) places[k] += places[k] < 0 ? 0 : begin;
    }
    return 0;
}

/* Rows of varints → the sum of each and the indices at its `places_of`, in one walk; counts are added
   to total[width] unless width is 0. Returns the rows done before the first that is not plain, that
   does not fit into `total`, or whose sum is above 2**38; of that row nothing is added. `index` and
   `counts` have room for the bytes of a row. */
API int64_t lk_fold(const uint8_t *data, int64_t size, const int64_t *begins, const int64_t *ends,
                    int64_t n, const int64_t *slots, int64_t each, const double *below, int64_t p,
                    int64_t *total, int64_t width, int64_t *index, int64_t *counts, int64_t room,
                    int64_t *sums, int64_t *places)
{
    for (int64_t r = 0; r < n; r++, places += 2 + p) {
        int64_t begin = begins[r], end = ends[r], entries;
        uint64_t sum;
        if (begin < 0 || begin > end || end > size || end - begin > room) return r;
        entries = decode_row(data + begin, data + end, slots[each ? r : 0], index, counts, &sum);
        if (entries < 0 || (entries && width && index[entries - 1] >= width)) return r;
        if (sum >> 38 || places_of(counts, entries, sum, below, p, places)) return r;
        sums[r] = (int64_t)sum;
        for (int64_t k = 0; k < 2 + p; k++) places[k] = sum ? index[places[k]] : -1;
        for (int64_t i = 0; width && i < entries; i++) /* wraps, as numpy does */
            total[index[i]] = (int64_t)((uint64_t)total[index[i]] + (uint64_t)counts[i]);
    }
    return n;
}

/* What eight bytes say, the first one lowest. */
static uint64_t eight_bytes(const uint8_t *p)
{
    uint64_t value = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&value, p, 8);
#else
    for (int k = 0; k < 8; k++) value |= (uint64_t)p[k] << 8 * k;
#endif
    return value;
}

enum { DIGITS = 32 };

/* DIGITS base64 digits → 24 bytes, and eight more that mean nothing. Returns 0 for digits alone. */
static int from_digits(const uint8_t *text, uint8_t *to)
{
    const uint64_t digit = 0x003F003F003F003F, two = 0x00000FFF00000FFF;
    uint8_t digits[DIGITS], other = 0;
    for (int i = 0; i < DIGITS; i++) { /* bytes that are 0 or 255: a compiler takes 16 at a time */
        int8_t c = (int8_t)text[i];
        uint8_t upper = (uint8_t)-((c >= 'A') & (c <= 'Z')), lower = (uint8_t)-((c >= 'a') & (c <= 'z'));
        uint8_t decimal = (uint8_t)-((c >= '0') & (c <= '9'));
        uint8_t plus = (uint8_t)-(c == '+'), slash = (uint8_t)-(c == '/');
        digits[i] = (uint8_t)((upper & (c - 'A')) | (lower & (c - 'a' + 26)) |
                              (decimal & (c - '0' + 52)) | (plus & 62) | (slash & 63));
        other |= (uint8_t)~(upper | lower | decimal | plus | slash);
    }
    for (int i = 0; i < DIGITS; i += 8, to += 6) {
        uint64_t x = eight_bytes(digits + i);
        x = (x & digit) << 6 | (x >> 8 & digit);
        x = (x & two) << 12 | (x >> 16 & two);
        x = x << 40 | x >> 32 << 16;
        for (int k = 0; k < 8; k++) to[k] = (uint8_t)(x >> (56 - 8 * k));
    }
    return other;
}

/* Base64 → its bytes, and up to DIGITS that mean nothing; how many there are, or -1. */
static int64_t from_base64(const uint8_t *text, int64_t size, uint8_t *to)
{
    const uint8_t *end = text + size;
    uint8_t last[DIGITS], plain[DIGITS];
    int64_t left, pads, other = 0;
    if (size < 4 || size & 3) return -1;
    for (; end - text > DIGITS; text += DIGITS, to += DIGITS / 4 * 3) other |= from_digits(text, to);
    left = end - text;
    pads = end[-1] != '=' ? 0 : end[-2] != '=' ? 1 : 2;
    memset(last, 'A', DIGITS);
    memcpy(last, text, (size_t)(left - pads));
    other |= from_digits(last, plain);
    memcpy(to, plain, (size_t)left / 4 * 3);
    for (int64_t k = 0; k < pads; k++) other |= to[left / 4 * 3 - 1 - k]; /* bits beyond the end */
    return other ? -1 : size / 4 * 3 - pads;
}

static uint32_t adler32(const uint8_t *p, int64_t n)
{
    enum { LANES = 16 };
    uint32_t a = 1, b = 0;
    while (n >= LANES) {
        uint32_t rows = (uint32_t)(n < 5552 ? n / LANES : 347); /* no sum reaches 2**32 before */
        uint32_t sums[LANES] = {0}, sums_of_sums[LANES] = {0};
        for (uint32_t r = 0; r < rows; r++, p += LANES)
            for (int i = 0; i < LANES; i++) sums_of_sums[i] += sums[i], sums[i] += p[i];
        b += LANES * rows * a;
        for (uint32_t i = 0; i < LANES; i++)
            a += sums[i], b += LANES * sums_of_sums[i] + (LANES - i) * sums[i];
        a %= 65521, b %= 65521, n -= LANES * rows;
    }
    for (; n; n--) a += *p++, b += a;
    return b % 65521 << 16 | a % 65521;
}

/* DEFLATE (RFC 1951) is here, though libraries have it, since a thread that calls them for each
   payload hands over the interpreter's lock three times in some microseconds: two threads then take
   longer than one. They remain the definition, and Adler-32 checks each result.

   A code is looked up by the next bits: an entry has the number of bits of code and number together
   from 0 on, that of the code from 8 on, then what it is, and from 16 on the value that the number
   is added to. */
enum { LITERAL = 0, BASE = 1 << 12, STOP = 2 << 12, NONE = 3 << 12, KIND = 3 << 12, BITS = 10 };
enum alphabet { LENGTHS, DISTANCES, PLAIN };
enum { SLACK = 320, AHEAD = 48 }; /* bytes that are written, and read, beyond the end at most */

struct code {
    uint32_t entry[1 << BITS], mask;
    uint16_t count[16], symbol[288];
    enum alphabet alphabet;
};

struct bits {
    const uint8_t *next, *end;
    uint64_t held;
    uint32_t n;
};

/* At least 56 bits. */
#define REFILL(next, held, n) (held |= eight_bytes(next) << n, next += (63 - n) >> 3, n |= 56)

static uint32_t take(struct bits *b, uint32_t n)
{
    uint32_t value = (uint32_t)b->held & ((1u << n) - 1);
    b->held >>= n;
    b->n -= n;
    return value;
}

static uint32_t entry_of(enum alphabet alphabet, uint32_t symbol)
{
    uint32_t k = symbol, extra = 0;
    if (alphabet == PLAIN || (alphabet == LENGTHS && k < 256)) return k << 16 | LITERAL;
    if (alphabet == DISTANCES) {
        if (k > 29) return NONE;
        if (k < 4) return (k + 1) << 16 | BASE;
        extra = (k >> 1) - 1;
        return (((2 + (k & 1)) << extra) + 1) << 16 | extra | BASE;
    }
    if (k == 256) return STOP;
    if (k > 285) return NONE;
    if (k == 285) return 258u << 16 | BASE;
    k -= 257;
    if (k < 8) return (k + 3) << 16 | BASE;
    extra = (k >> 2) - 1;
    return (((4 + (k & 3)) << extra) + 3) << 16 | extra | BASE;
}

/* Prepares a code, given by the lengths of n symbols; -1 if they do not use up all codes, unless
   there is at most one distance. */
static int prepare(struct code *c, enum alphabet alphabet, const uint8_t *lengths, uint32_t n)
{
    uint32_t bits = alphabet == LENGTHS ? BITS : alphabet == DISTANCES ? 9 : 7, used, code = 0;
    uint16_t at[17] = {0}, *symbol = c->symbol;
    int left = 1;
    memset(c->count, 0, sizeof c->count);
    for (uint32_t s = 0; s < n; s++) c->count[lengths[s]]++;
    used = n - c->count[0];
    c->count[0] = 0;
    for (uint32_t length = 1; length < 16; length++) {
        left = (left << 1) - c->count[length];
        if (left < 0) return -1;
        at[length + 1] = (uint16_t)(at[length] + c->count[length]);
    }
    if (left && (alphabet != DISTANCES || used > 1 || used != c->count[1])) return -1;
    for (uint32_t s = 0; s < n; s++)
        if (lengths[s]) symbol[at[lengths[s]]++] = (uint16_t)s;
    c->alphabet = alphabet;
    c->mask = (1u << bits) - 1;
    for (uint32_t k = 0; k <= c->mask; k++) c->entry[k] = NONE;
    for (uint32_t length = 1; length <= bits; length++) /* codes are read from their last bit on */
        for (uint32_t left_of = c->count[length]; left_of; left_of--) {
            uint32_t entry = entry_of(alphabet, *symbol++) + length * 257, bit = 1u << (length - 1);
            for (uint32_t k = code; k <= c->mask; k += 1u << length) c->entry[k] = entry;
            for (; code & bit; bit >>= 1) code ^= bit;
            code |= bit;
        }
    return 0;
}

/* The entry of a code that is longer than those in the table. */
static uint32_t long_entry(const struct code *c, uint64_t held)
{
    uint32_t code = 0, first = 0, at = 0;
    for (uint32_t length = 1; length < 16; length++, held >>= 1) {
        code = code << 1 | (uint32_t)(held & 1);
        first <<= 1;
        if (code - first < c->count[length])
            return entry_of(c->alphabet, c->symbol[at + code - first]) + length * 257;
        first += c->count[length];
        at += c->count[length];
    }
    return NONE;
}

#define FOUND(c) ((c)->entry[held & (c)->mask])
#define DROP(e) (held >>= (e) & 63, n -= (e) & 63)
#define NUMBER(e, bits) \
    (((e) >> 16) + (uint32_t)(((bits) & (((uint64_t)1 << ((e) & 63)) - 1)) >> ((e) >> 8 & 15)))
#define PUT_LITERAL (*to++ = (uint8_t)(e >> 16), DROP(e), e = FOUND(lengths))

/* One block of codes, written from `to` on; where it ended, or NULL. */
static uint8_t *block(struct bits *b, const struct code *lengths, const struct code *distances,
                      const uint8_t *begin, uint8_t *to, const uint8_t *limit)
{
    const uint8_t *next = b->next, *stop = b->end + 8;
    uint64_t held = b->held, before;
    uint32_t n = b->n, e, f, length, distance;
    REFILL(next, held, n);
    e = FOUND(lengths);
    while (to <= limit && next <= stop) { /* with 56 bits, and the entry that they begin with */
        if (!(e & KIND)) {
            PUT_LITERAL;
            if (!(e & KIND)) {
                PUT_LITERAL;
                if (!(e & KIND)) PUT_LITERAL;
            }
            REFILL(next, held, n);
            if (!(e & KIND)) continue;
        }
        if ((e & KIND) == NONE) e = long_entry(lengths, held);
        if ((e & KIND) != BASE) {
            DROP(e);
            if ((e & KIND) == STOP) {
                b->next = next, b->held = held, b->n = n;
                return to;
            }
            if ((e & KIND) == NONE) return NULL;
            *to++ = (uint8_t)(e >> 16);
            REFILL(next, held, n);
            e = FOUND(lengths);
            continue;
        }
        before = held;
        DROP(e);
        length = NUMBER(e, before);
        f = FOUND(distances);
        if ((f & KIND) == NONE) f = long_entry(distances, held);
        if ((f & KIND) != BASE) return NULL;
        before = held;
        DROP(f);
        distance = NUMBER(f, before);
        if (distance > to - begin) return NULL;
        REFILL(next, held, n);
        e = FOUND(lengths);
        if (distance >= 8) {
            const uint8_t *from = to - distance, *end = from + length;
            memcpy(to, from, 8), memcpy(to + 8, from + 8, 8);
            for (uint32_t k = 16; k < length; k += 8) memcpy(to + k, from + k, 8);
            to += end - from;
        } else {
            for (; length; length--, to++) *to = *(to - distance);
        }
    }
    return NULL;
}

/* Reads the codes of a block of type 1 (the usual ones) or 2. */
static int codes_of(struct bits *b, uint32_t type, struct code *lengths, struct code *distances)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t of[320];
    uint32_t literals, others, some, at = 0;
    if (type == 1) {
        for (; at < 320; at++) of[at] = at < 144 ? 8 : at < 256 ? 9 : at < 280 ? 7 : at < 288 ? 8 : 5;
        return prepare(lengths, LENGTHS, of, 288) | prepare(distances, DISTANCES, of + 288, 32);
    }
    literals = take(b, 5) + 257, others = take(b, 5) + 1, some = take(b, 4) + 4;
    if (literals > 286 || others > 30) return -1;
    memset(of, 0, 19);
    REFILL(b->next, b->held, b->n);
    for (uint32_t k = 0; k < some; k++) {
        of[order[k]] = (uint8_t)take(b, 3);
        if (k == 9) REFILL(b->next, b->held, b->n);
    }
    if (prepare(lengths, PLAIN, of, 19)) return -1;
    while (at < literals + others) {
        uint32_t e, symbol, repeat = 1;
        uint8_t value;
        if (b->next > b->end + 8) return -1;
        REFILL(b->next, b->held, b->n);
        e = lengths->entry[b->held & lengths->mask];
        if (e & KIND) return -1;
        take(b, e & 63);
        symbol = e >> 16, value = (uint8_t)symbol;
        if (symbol == 16) {
            if (!at) return -1;
            repeat = 3 + take(b, 2), value = of[at - 1];
        } else if (symbol > 16) {
            repeat = symbol == 17 ? 3 + take(b, 3) : 11 + take(b, 7), value = 0;
        }
        if (repeat > literals + others - at) return -1;
        for (; repeat; repeat--) of[at++] = value;
    }
    if (!of[256]) return -1;
    return prepare(lengths, LENGTHS, of, literals) |
           prepare(distances, DISTANCES, of + literals, others);
}

/* Inflates [next, end), of which AHEAD more bytes can be read; at most limit - out bytes, of which
   SLACK more can be written. How many they are, or -1. */
static int64_t inflate(const uint8_t *next, const uint8_t *end, uint8_t *out, const uint8_t *limit)
{
    struct bits b = {next, end, 0, 0};
    struct code lengths, distances;
    uint8_t *to = out;
    uint32_t last, type, known = 0;
    do {
        if (b.next > end + 8) return -1;
        REFILL(b.next, b.held, b.n);
        last = take(&b, 1), type = take(&b, 2);
        if (type == 3) return -1;
        if (type) {
            if ((type == 2 || known != 1) && codes_of(&b, type, &lengths, &distances)) return -1;
            known = type;
            to = block(&b, &lengths, &distances, out, to, limit);
            if (!to || to > limit) return -1;
        } else {
            const uint8_t *from = b.next - (b.n >> 3);
            int64_t size;
            if (end - from < 4) return -1;
            size = from[0] | from[1] << 8;
            if ((size ^ (from[2] | from[3] << 8)) != 0xFFFF) return -1;
            from += 4;
            if (size > end - from || size > limit - to) return -1;
            memcpy(to, from, (size_t)size);
            to += size;
            b.next = from + size, b.held = 0, b.n = 0;
        }
    } while (!last);
    return b.next - (b.n >> 3) == end ? to - out : -1;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Texts of compressed histograms of version 2 → what they inflate to, one after the other in out[room
   + SLACK], each at most `most` bytes; stops[n] says where each ends. Returns the rows done before the
   first that is not plain or has no room. raw[space] is for the bytes of one text. */
API int64_t lk_open(const uint8_t *data, int64_t size, const int64_t *begins, const int64_t *ends,
                    int64_t n, int64_t most, uint8_t *raw, int64_t space, uint8_t *out, int64_t room,
                    int64_t *stops)
{
    uint8_t *to = out;
    for (int64_t r = 0; r < n; r++) {
        int64_t begin = begins[r], end = ends[r], bytes, left = room - (to - out);
        if (begin < 0 || begin > end || end > size || (end - begin) / 4 * 3 + AHEAD > space) return r;
        bytes = from_base64(data + begin, end - begin, raw);
        if (bytes < 14 || big_endian(raw) != 0x1C849314 || big_endian(raw + 4) != bytes - 8) return r;
        if (raw[8] != 0x78 || raw[9] & 0x20 || (raw[8] << 8 | raw[9]) % 31) return r;
        memset(raw + bytes, 0, AHEAD - 2); /* padding is there, too */
        left = inflate(raw + 10, raw + bytes - 4, to, to + (left < most ? left : most));
        if (left < 0 || adler32(to, left) != big_endian(raw + bytes - 4)) return r;
        to += left;
        stops[r] = to - out;
    }
    return n;
}

/* Rows of varints → the highest entries of each, from index lowest[its last index] on, as CSR:
   indptr[n + 1], top[space] and their counts. Returns the rows done before the first that is not
   plain, is not within lowest[width], or has no room. `index` and `counts` are as in `lk_fold`. */
API int64_t lk_top(const uint8_t *data, int64_t size, const int64_t *begins, const int64_t *ends,
                   int64_t n, const int64_t *slots, int64_t each, const int64_t *lowest,
                   int64_t width, int64_t *index, int64_t *counts, int64_t room, int64_t *indptr,
                   int64_t *top, int64_t *top_counts, int64_t space)
{
    int64_t done = indptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t begin = begins[r], end = ends[r], entries, first;
        uint64_t sum;
        if (begin < 0 || begin > end || end > size || end - begin > room) return r;
        first = entries = decode_row(data + begin, data + end, slots[each ? r : 0], index, counts, &sum);
        if (entries < 0 || (entries && index[entries - 1] >= width)) return r;
        while (first && index[first - 1] >= lowest[index[entries - 1]]) first--;
        if (entries - first > space - done) return r;
        for (int64_t i = first; i < entries; i++, done++)
            top[done] = index[i], top_counts[done] = counts[i];
        indptr[r + 1] = done;
    }
    return n;
}

/* Where lines end, and where commas[room] of them are, `width` per line, in text that ends with a
   line feed. Returns the number of lines; -1 where a line has another number of commas, or where
   there are more lines than ends[] has room for. */
API int64_t lk_lines(const uint8_t *text, int64_t size, int64_t width, int64_t *ends, int64_t room,
                     int64_t *commas)
{
    int64_t lines = 0;
    for (const uint8_t *at = text, *end = text + size; at < end; lines++) {
        const uint8_t *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop || lines == room) return -1;
        for (int64_t k = 0; k < width; k++, line++) {
            line = memchr(line, ',', (size_t)(stop - line));
            if (!line) return -1;
            *commas++ = line - text;
        }
        if (memchr(line, ',', (size_t)(stop - line))) return -1;
        ends[lines] = stop - text;
        at = stop + 1;
    }
    return lines;
}

#define POWERS 22 /* of ten that a float64 holds exactly */
static const double power_of_ten[POWERS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number of a table → its digits, the power of ten that they are times (in `power`), and whether it
   is spelled as a fraction. Returns its end, or NULL where a reader might round it otherwise. */
static const uint8_t *number(const uint8_t *p, int64_t *digits, int8_t *power, uint8_t *real)
{
    const uint8_t *begin, *point = NULL;
    uint64_t value = 0, exponent = 0, minus = *p == '-';
    int64_t length, shift = 0;
    for (begin = p += minus;; p++) {
        uint64_t digit = (uint64_t)*p - '0';
        if (digit < 10)
            value = value * 10 + digit; /* may wrap: the length is looked at below */
        else if (*p == '.' && !point)
            point = p;
        else
            break;
    }
    length = p - begin - (point != NULL);
    if (length < 1 || length > 19 || value > INT64_MAX || (minus && !value)) return NULL;
    if (point) shift = point + 1 - p;
    if ((*p | 32) == 'e') {
        uint64_t down = p[1] == '-';
        for (begin = p += 1 + (down || p[1] == '+'); *p >= '0' && *p <= '9' && exponent < 100; p++)
            exponent = exponent * 10 + (uint64_t)*p - '0';
        if (p == begin) return NULL;
        shift += down ? -(int64_t)exponent : (int64_t)exponent;
        *real = 1;
    }
    *real |= point != NULL;
    /* more digits are cut by some readers, zeros in front of them included */
    if (length > 17 && (*real || value < (uint64_t)1e17)) return NULL;
    if (shift > POWERS || shift < -POWERS) return NULL;
    *digits = minus ? -(int64_t)value : (int64_t)value;
    *power = (int8_t)shift;
    return p;
}

/* The code of a word[size] among those met before, of which words[most * 2] says where they are;
   -1 where there are more, or where it takes long to find. slots[2 * most] are 0 at first. */
static int64_t code_of(const uint8_t *text, const uint8_t *word, int64_t size, int64_t *words,
                       int64_t *known, int64_t most, int32_t *slots, int64_t *patience)
{
    uint64_t head = 0, tail = 0, hash, mask = (uint64_t)(2 * most - 1);
    if (size >= 8) {
        memcpy(&head, word, 8);
        memcpy(&tail, word + size - 8, 8);
    } else
        for (int64_t k = 0; k < size; k++) head = head << 8 | word[k];
    hash = (head * 0x9E3779B97F4A7C15u ^ tail ^ (uint64_t)size) * 0xD6E8FEB86659FD93u;
    for (uint64_t at = hash >> 32 & mask;; at = (at + 1) & mask) {
        int64_t code = slots[at] - 1;
        if (code < 0) {
            if (*known == most) return -1;
            words[2 * *known] = word - text;
            words[2 * *known + 1] = word - text + size;
            return (slots[at] = (int32_t)++*known) - 1;
        }
        const int64_t *other = words + 2 * code;
        if (other[1] - other[0] == size && !memcmp(text + other[0], word, (size_t)size)) return code;
        if (!(*patience)--) return -1;
    }
}

/* Cells of a table whose lines end with a line feed: role[columns] is the row of numbers[room] and
   of powers[room] that a column goes to, or -1 for none, or -2 - k for row k of codes[room], with
   words[most * 2] and slots[2 * most] each; `most` is a power of two. Numbers come out as int64 where
   real[] stays 0, else as float64. Returns the number of rows; -1 where something is unusual. */
API int64_t lk_table(const uint8_t *text, int64_t size, int64_t sep, const int64_t *role,
                     int64_t columns, int64_t room, int64_t *numbers, int8_t *powers,
                     uint8_t *real, int64_t kinds, int32_t *codes, int64_t *words, int64_t *known,
                     int32_t *slots, int64_t most)
{
    const uint8_t *p = text, *end = text + size;
    uint8_t special[256] = {0};
    int64_t rows = 0, patience = size;
    if (size < 1 || end[-1] != '\n' || columns < 1) return -1;
    special[0] = special['\n'] = special['\r'] = special['"'] = special[sep & 255] = 1;
    for (; p < end; rows++) {
        if (rows == room || *p == ' ' || *p == '\t') return -1;
        for (int64_t c = 0; c < columns; c++, p++) {
            int64_t to = role[c], code, quoted = *p == '"';
            const uint8_t *begin = p += quoted, *stop;
            if (to >= 0) {
                int64_t *cell = numbers + to * room + rows;
                int8_t *power = powers + to * room + rows;
                if (special[*p])
                    *power = INT8_MAX, *cell = 0, real[to] = 1; /* not a number */
                else if (!(p = number(p, cell, power, real + to)))
                    return -1;
                stop = p;
            } else {
                if (quoted)
                    while (*p != '"' && *p && *p != '\r' && *p != '\n') p++;
                else
                    while (!special[*p]) p++;
                stop = p;
                if (to < -1) {
                    to = -2 - to;
                    code = code_of(text, begin, stop - begin, words + to * 2 * most, known + to,
                                   most, slots + to * 2 * most, &patience);
                    if (code < 0) return -1;
                    codes[to * room + rows] = (int32_t)code;
                }
            }
            if (quoted && *p++ != '"') return -1;
            if (c < columns - 1) {
                if (*p != sep) return -1;
                continue;
            }
            if (*p == '\r') p++;
            if (*p != '\n' || (columns == 1 && stop == begin)) return -1;
        }
    }
    for (int64_t k = 0; k < kinds; k++)
        for (int64_t i = k * room; real[k] && i < k * room + rows; i++) {
            double value = (double)numbers[i];
            if (powers[i] == INT8_MAX)
                value = NAN;
            else if (numbers[i] >> 53 && -numbers[i] >> 53)
                return -1;
            else
                value = powers[i] < 0 ? value / power_of_ten[-powers[i]]
                                      : value * power_of_ten[powers[i]];
            memcpy(numbers + i, &value, 8);
        }
    return rows;
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

/* The recorder's count: rows[n * 5] of start, end, due (-1: none), outcome, tag. Counts the service
   times of good rows of one tag that end in [begin, until), in steps of 1 ns and buckets of half + 1
   bits, and writes into kept[n * 2] when they ended after `begin` and how long they took. Returns how
   many it took before the first that is not so, or that does not fit into the table or 32 bits. */
API int64_t lk_measured(const int64_t *rows, int64_t n, int64_t begin, int64_t until, int64_t tag,
                        int64_t half, int64_t *total, int64_t width, uint32_t *kept)
{
    if (half < 0 || half > 40 || width < 0) return 0;
    for (int64_t i = 0; i < n; i++, rows += 5) {
        int64_t start = rows[0], end = rows[1];
        uint64_t value = (uint64_t)end - (uint64_t)start, at;
        uint64_t after = (uint64_t)end - (uint64_t)begin;
        if (end < begin || end >= until || rows[2] != -1 || rows[3] || rows[4] != tag) return i;
        if (start > end || value >> 32 || after >> 32) return i;
        at = value;
        if (value >> (half + 1)) at = fine_index((double)value, half) - ((uint64_t)half << half);
        if (at >= (uint64_t)width) return i;
        total[at]++;
        kept[2 * i] = (uint32_t)after;
        kept[2 * i + 1] = (uint32_t)value;
    }
    return n;
}
