// hdrhistogram-go as a peer: read a log, add all intervals up, take p50, p99 and max of each.
package main

import (
	"bufio"
	"fmt"
	"os"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	reader := hdr.NewHistogramLogReader(bufio.NewReaderSize(file, 1<<20))
	total, series := hdr.New(1, 3600000000000, 3), int64(0)
	for {
		one, err := reader.NextIntervalHistogram()
		if err != nil {
			panic(err)
		}
		if one == nil {
			break
		}
		series += one.ValueAtQuantile(50) + one.ValueAtQuantile(99) + one.Max()
		total.Merge(one)
	}
	fmt.Println(total.TotalCount(), total.Max(), series)
}
