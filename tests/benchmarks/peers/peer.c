/* HdrHistogram_c as a peer: read a log, add all intervals up, take p50, p99 and max of each. */
#include <hdr_histogram.h>
#include <hdr_histogram_log.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
    struct hdr_histogram *total, *one = NULL;
    struct hdr_log_reader reader;
    hdr_timespec start, length;
    int64_t series = 0;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!file || hdr_init(1, INT64_C(3600000000000), 3, &total)) return 1;
    if (hdr_log_reader_init(&reader) || hdr_log_read_header(&reader, file)) return 2;
    while (hdr_log_read(&reader, file, &one, &start, &length) == 0) {
        series += hdr_value_at_percentile(one, 50) + hdr_value_at_percentile(one, 99) + hdr_max(one);
        hdr_add(total, one);
        hdr_close(one);
        one = NULL;
    }
    printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", total->total_count, hdr_max(total), series);
    return 0;
}
