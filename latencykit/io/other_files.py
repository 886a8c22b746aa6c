"""Files that hold no latencies but are often given: what each is, and where its numbers are.

Asked only when no format is sure of an input, so a wrong guess costs a reading nothing. In a hint,
``FILE`` stands for the input's path.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from latencykit._text import printable

if TYPE_CHECKING:
    from latencykit.io.source import Head

_EVENTS = (
    "it says what happened, not how long requests took: `latencykit explain RUN --events FILE`"
)
_PICTURE = "a picture has no numbers to read: give the file that it was drawn from"
_PROGRAM = "run it under a load generator and give the output, such as `hey -o csv URL > out.csv`"
_PAGE = "give the data that it shows: the tool's JSON, CSV or log"
_UNPACK = "it has to be unpacked: give the file in it that contains the results"
_PACKETS = "it contains packets, not requests: "
_CAPTURE = _PACKETS + "`tshark -r FILE -Y http.time -T fields -e http.time > seconds.txt`"
_AVERAGES = "it contains rates and averages per interval, not the time of any request"
_FAILED = "the tool that should have measured ended with it: run it again, and give its results"
_SCRIPT = "it says what to measure, and contains no results: "

_FIRST = 12  # lines

# What the file begins with, what it is, and the hint.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (rb"\x89PNG", "a PNG picture", _PICTURE),
    (rb"\xff\xd8\xff", "a JPEG picture", _PICTURE),
    (rb"GIF8", "a GIF picture", _PICTURE),
    (rb"%PDF", "a PDF document", _PICTURE),
    (rb"MZ", "a Windows program", _PROGRAM),
    (rb"\xca\xfe\xba\xbe", "a Java class", _PROGRAM),
    (
        rb"SQLite format 3", "an SQLite database",
        "export the table: `sqlite3 -header -csv FILE 'SELECT * FROM calls' > calls.csv`",
    ),
    (rb"\x0a\x0d\x0d\x0a", "a packet capture (pcapng)", _CAPTURE),
    (rb"\xd4\xc3\xb2\xa1|\xa1\xb2\xc3\xd4", "a packet capture (pcap)", _CAPTURE),
    (rb"\x4d\x3c\xb2\xa1|\xa1\xb2\x3c\x4d", "a packet capture (pcap)", _CAPTURE),
    (rb"JAVA PROFILE", "a JVM heap dump", "it contains memory, not latencies"),
    (rb"FLR\x00", "a JDK Flight Recorder file", "print its events: `jfr print --json FILE`"),
    (rb"PERFILE2", "a recording of perf", "it contains samples of the CPU, not latencies"),
    (rb"MDMP", "a Windows crash dump", _FAILED),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (rb"\xd0\xcf\x11\xe0", "an old Office document", "save its table as CSV"),
    (
        rb"version https://git-lfs", "a pointer of Git LFS, not the file itself",
        "fetch the file: `git lfs pull`",
    ),
    # ET_CORE, in either byte order
    (rb"\x7fELF.{12}(?:\x04\x00|\x00\x04)", "a core dump", _FAILED),
    (rb"\x7fELF", "an ELF program", _PROGRAM),
    (
        rb"PK\x03\x04(?:.*xl/|.{,41}\[Content_Types\]\.xml)", "an Office document",
        "save its table as CSV",
    ),
    (rb"PK\x03\x04", "a ZIP archive", "name the file in it: `zip://results.csv::FILE`"),
    (rb".{257}ustar", "a tar archive", _UNPACK),
    (
        rb"\x80[\x02-\x05][\x8a-\x95c}\](]", "a Python pickle",
        "pickles can run code and are never loaded: save a table, `frame.to_parquet(…)`",
    ),
)  # fmt: skip

# What JSON contains, what it is, and the hint.
_JSON: tuple[tuple[str, str, str], ...] = (
    (r'"__REALTIME_TIMESTAMP"', "a journal of systemd", _EVENTS),
    (r'"(?:involvedObject|regarding)"\s*:', "a list of Kubernetes events", _EVENTS),
    (
        r"\A\s*\{(?=[\s\S]*\"cells\"\s*:)[\s\S]*\"cell_type\"\s*:", "a Jupyter notebook",
        "have it save its measurements, `frame.to_csv('calls.csv')`, and give that file",
    ),
    (
        (r"\A\s*\{(?=[\s\S]*\"(?:panels|rows)\"\s*:)"
        r"[\s\S]*\"(?:schemaVersion|templating|gridPos)\"\s*:"),
        "a Grafana dashboard",
        ("it contains queries, not their results: save the answer of Prometheus' "
        "/api/v1/query_range, and give that"),
    ),
)  # fmt: skip

# What other text contains (lines are matched by ^ and $), what it is, and the hint.
_TEXT: tuple[tuple[str, str, str], ...] = (
    (
        r"^# A fatal error has been detected by the Java Runtime", "a crash report of the JVM",
        _FAILED,
    ),
    (r"^Full thread dump ", "a thread dump of a JVM", "it contains stacks, not latencies"),
    (
        (r"GC\(\d+\) |\] Safepoint \"|\[gc(?:,\w+)*\s*\]|^[^\n]{0,80}?\[(?:Full )?GC\b|"
        r"application threads were stopped: "),
        "a JVM GC log", "it contains pauses, not latencies: `latencykit explain RUN --events FILE`",
    ),
    (
        r"^gc \d+ @\d+\.\d+s \d+%: ", "a Go GC trace",
        "it contains pauses, not latencies: `latencykit explain RUN --events FILE`",
    ),
    (
        r"^groups:[ \t]*$(?=[\s\S]*^[ \t]*(?:- )?(?:expr|alert|record):)",
        "a file of Prometheus' rules",
        "it contains queries, not their results: `curl http://HOST:PORT/metrics > scrape.txt`",
    ),
    (
        r"^scrape_configs:[ \t]*$", "a configuration of Prometheus",
        "it names targets: `curl http://HOST:PORT/metrics > scrape.txt` reads one",
    ),
    (
        r"<jmeterTestPlan", "a JMeter test plan",
        _SCRIPT + "`jmeter -n -t FILE -l results.jtl`, and give results.jtl",
    ),
    (
        r"^[ \t]*import\b[^\n]*\bfrom[ \t]+[\"']k6(?:/[\w./-]+)?[\"']", "a k6 script",
        _SCRIPT + "`k6 run --out csv=out.csv FILE`, and give out.csv",
    ),
    (
        r"^import io\.gatling\.|\bextends Simulation\b", "a Gatling simulation",
        _SCRIPT + "run it, and give target/gatling/*/simulation.log",
    ),
    (
        r"^(?:from locust\b.* import|import locust\b)", "a locustfile",
        _SCRIPT + "`locust -f FILE --headless --csv out`, and give out_stats.csv",
    ),
    (
        (r"^[ \t]*wrk\.(?:method|body|headers|path|format)\b|"
        r"^[ \t]*function (?:request|response|done) *\("),
        "a script of wrk", _SCRIPT + "`wrk2 -R 1000 --latency -s FILE URL > wrk2.txt`",
    ),
    (
        r"^config:[ \t]*$(?=[\s\S]*^[ \t]+target:)|^scenarios:[ \t]*$", "an Artillery script",
        _SCRIPT + "`artillery run --output out.json FILE`, and give out.json",
    ),
    (
        r"\A(?:GET|POST|PUT|PATCH|DELETE|HEAD) https?://\S+\s*$", "a list of vegeta's targets",
        _SCRIPT + "`vegeta attack -targets FILE -rate 100 | vegeta encode > results.json`",
    ),
    (
        r"^\[\w[\w -]*\][ \t]*$(?=[\s\S]*^[ \t]*(?:rw|readwrite|ioengine)[ \t]*=)",
        "a job file of fio",
        _SCRIPT + "`fio --output-format=json+ --output=out.json FILE`",
    ),
    (
        r"^\d\d:\d\d:\d\d\.\d{6} (?:\S+ +(?:In|Out) +)?(?:IP6?|ARP)\b", "tcpdump's text",
        _PACKETS + "capture with `tcpdump -w run.pcap`, then "
        "`tshark -r run.pcap -Y http.time -T fields -e http.time > seconds.txt`",
    ),
    (
        r"\A *1\) +1\) \(integer\) |\A\d+\n1\d{9}\n\d+\n|\A\s*\[\[\d+,\s*1\d{9},",
        "the slow log of Redis", _EVENTS,
    ),
    (r"^procs -+memory-+", "vmstat's table", _AVERAGES),
    (r"^(?:avg-cpu: |Device\s+.*(?:r_await|await)\b)", "iostat's table", _AVERAGES),
    (r"^top - \d\d:\d\d:\d\d up ", "top's screen", _AVERAGES),
    (
        r"\A(?:[^\n; ]+;){2}[^\n]* \d+\n(?:[^\n; ]+;){2}[^\n]* \d+$", "folded stacks of a profiler",
        "it counts samples of the CPU; it contains no latencies",
    ),
    (
        r"\A\s*(?:<\?xml[^>]*>\s*)?<Error>\s*<Code>(?P<what>\w+)",
        "an error answer of a storage server ({what})", "see its address and your rights to it",
    ),
    (r"\A\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?<svg\b",
     "an SVG picture", _PICTURE),
    (r"\A\s*(?:<!--[\s\S]*?-->\s*)?<(?:!doctype html|html)\b", "an HTML page", _PAGE),
    (
        (r"^Traceback \(most recent call last\):|^[ \t]+at [\w.$<>/]+\([^)\n]*\)$|"
        r"^goroutine \d+ \[|^panic: |^thread '[^']*' (?:\(\d+\) )?panicked at "),
        "a stack trace", _FAILED,
    ),
    (
        r"\A\s*(?:\S+: )?(?:line \d+: |\d+: )?(?P<what>[\w./-]+): (?:command )?not found",
        "a shell's message that {what} was not found", "install that tool and run it again",
    ),
    (
        r"\A(?:[^\n]*\n){0,4}?\s*usage:? ", "a tool's usage text",
        "it refused its options: run it again, and give its results",
    ),
)  # fmt: skip


def hint_for(head: Head, path: str, *, readable: bool) -> str | None:
    """Return what a file is that holds no latencies, with a hint, or None if that is not known.

    One that may be `readable` as a table or the like is known by its first lines only.
    """
    data = head.data
    known = ((kind, hint) for begin, kind, hint in _MAGIC if re.match(begin, data, re.DOTALL))
    kind, hint = next(known, ("", ""))
    if not kind and b"\0" not in data:
        begin = "\n".join(head.lines[:_FIRST])
        text = begin if readable else head.text
        table = _JSON if re.match(r"\s*(?:\{|\[\s*\{)", text) else _TEXT
        for pattern, name, advice in table:
            if readable and advice is _FAILED:
                continue  # what was measured before that counts
            part = begin if advice is _AVERAGES else text  # prose may show such a table below
            if (match := re.search(pattern, part, re.MULTILINE | re.IGNORECASE)) is not None:
                detail = printable(match.groupdict().get("what") or "", 40)
                kind, hint = name.format(what=detail), advice
                break
    return f"this is {kind}; {hint.replace('FILE', shlex.quote(path))}" if kind else None
