"""k6's summaries in their shapes, and its points."""

from __future__ import annotations

TEXT = """
     scenarios: (100.00%) 1 scenario, 50 max VUs, 35s max duration (incl. graceful stop):
              * s: 150.00 iterations/s for 20s (maxVUs: 20-1500, gracefulStop: 15s)

running (01.0s), 0002/0020 VUs, 147 complete and 0 interrupted iterations

  █ TOTAL RESULTS

    HTTP
    http_req_duration..............: avg=5.73ms min=114µs  med=1.42ms max=1m6.02s p(90)=2.72s p(95)=4.45s
      { expected_response:true }...: avg=5.55ms min=114µs  med=1.42ms max=6.02s   p(90)=2.7s  p(95)=4.4s
    http_req_failed................: 1.57%  40 out of 2558
    http_reqs......................: 2558   127.869485/s

    EXECUTION
    dropped_iterations.............: 443    22.144715/s
    iteration_duration.............: avg=5.95ms min=1.18ms med=1.59ms max=6.02s p(90)=2.72s p(95)=4.45s
    iterations.....................: 2558   127.869485/s
    queue_length...................: avg=3 min=1 med=2 max=9 p(90)=4 p(95)=5
    vus_max........................: 459    min=20        max=459

  █ SCENARIO: s

    http_req_duration..............: avg=9.73ms min=114µs  med=9.42ms max=1m6.02s p(90)=2.72s p(95)=4.45s

running (20.0s), 0000/0459 VUs, 2558 complete and 3 interrupted iterations
"""


def test_a_long_line_of_blanks_takes_no_more_than_its_length(read_text):
    assert read_text(TEXT + " " * 60_000)["http_req_duration"].count == 2518
