module peer

go 1.21

require github.com/HdrHistogram/hdrhistogram-go v1.1.2
