"""Distributed traces: OTLP (JSON and protobuf), and the JSON of Jaeger's API and of Zipkin v2.

Each span is one request of its operation. The roots of traces are what users wait for, so they are
read by default; ``--series OPERATION`` gives all spans of an operation. Sources: OTLP's trace.proto
and its JSON encoding, Jaeger's model.json, Zipkin's zipkin2-api.yaml.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from latencykit._text import format_items
from latencykit._typing import AnyArray, JSONObject
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, has_match
from latencykit.io.wire import Schema, first, messages

_MOST = 64  # attributes that become columns: those of most spans
_SHOWN = 8  # operations that a note names
_OTLP = re.compile(r'"resource_?spans"\s*:|"batches"\s*:(?=[\s\S]*"scopeSpans")', re.IGNORECASE)
_JSON = r"\A\s*[{\[]"
_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_JAEGER = re.compile(r'"operationName"\s*:')
_ZIPKIN = re.compile(r'"(?:localEndpoint|remoteEndpoint|parentId|binaryAnnotations)"\s*:')
_ID = re.compile(r"(?!0+$)(?:[0-9a-f]{16}){1,2}$")  # of eight or sixteen bytes, not all zero

# The messages of trace.proto, by the keys of their JSON.
_SCALAR: Schema = {
    1: ("stringValue", "text"), 2: ("boolValue", "bool"), 3: ("intValue", "int"),
    4: ("doubleValue", "double"), 7: ("bytesValue", "hex"),
}  # fmt: skip
_VALUE: Schema = _SCALAR | {5: ("arrayValue", {1: ("values[]", _SCALAR)})}
_ATTRIBUTE: Schema = {1: ("key", "text"), 2: ("value", _VALUE)}
_SPAN: Schema = {
    1: ("traceId", "hex"), 2: ("spanId", "hex"), 4: ("parentSpanId", "hex"), 5: ("name", "text"),
    6: ("kind", "int"), 7: ("startTimeUnixNano", "fixed64"), 8: ("endTimeUnixNano", "fixed64"),
    9: ("attributes[]", _ATTRIBUTE), 15: ("status", {3: ("code", "int")}),
}  # fmt: skip
_RESOURCE: Schema = {
    1: ("resource", {1: ("attributes[]", _ATTRIBUTE)}),
    2: ("scopeSpans[]", {2: ("spans[]", _SPAN)}),
}
_EXPORT: Schema = {1: ("resourceSpans[]", _RESOURCE)}

# trace, span, parent, operation, service, kind, start (ns), end (ns; 0: none), failed, attributes
_Span = tuple[str, str, str, str, str, str, int, int, bool, dict[str, Any]]


def _parent(span_id: object) -> str:
    """The id of a parent; some writers state zeros for none."""
    text = str(span_id or "")
    return text if text.strip("0") else ""


def _otlp(documents: Iterable[JSONObject]) -> Iterator[_Span]:
    for document in documents:
        inside = document.get("trace") or document  # Grafana Tempo's answers: trace, or batches
        for resource in next(filter(None, map(inside.get, _RESOURCES)), ()):
            about = _attributes((resource.get("resource") or {}).get("attributes"))
            service = str(about.pop("service.name", ""))
            for scope in resource.get("scopeSpans") or resource.get("scope_spans") or []:
                for span in scope.get("spans") or []:
                    code = str((span.get("status") or {}).get("code", 0))
                    kind = str(span.get("kind", "")).removeprefix("SPAN_KIND_").lower()
                    trace, own, parent, start, end = (
                        json_text.field_of(span, name) for name in _FIELDS
                    )
                    yield (
                        str(trace), str(own), _parent(parent), str(span.get("name")), service,
                        _KINDS.get(kind, kind), int(start or 0), int(end or 0),
                        code in ("2", "STATUS_CODE_ERROR"),
                        about | _attributes(span.get("attributes")),
                    )  # fmt: skip


_FIELDS = ("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano")
_KINDS = {"1": "internal", "2": "server", "3": "client", "4": "producer", "5": "consumer"}


def _attributes(entries: Any) -> JSONObject:
    """The values of AnyValues, ``{"stringValue": "x"}``, by their keys; lists and maps as JSON."""
    found: JSONObject = {}
    for entry in entries or []:
        value = entry.get("value")
        if isinstance(value, dict) and len(value) == 1:
            ((kind, value),) = value.items()
            if kind.lower().replace("_", "") == "intvalue" and str(value).lstrip("-").isdigit():
                value = int(value)
        found[str(entry.get("key"))] = (
            json.dumps(value) if isinstance(value, dict | list) else value
        )
    return found


def _jaeger(documents: Iterable[JSONObject]) -> Iterator[_Span]:
    for document in documents:
        for trace in document.get("data") or [document]:
            processes = trace.get("processes") or {}
            lone = [trace] if "spanID" in trace else []  # as Jaeger stores it in Elasticsearch
            for span in trace.get("spans") or lone:
                process = span.get("process") or processes.get(span.get("processID")) or {}
                tags = {
                    str(item.get("key")): item.get("value")
                    for item in [*(process.get("tags") or []), *(span.get("tags") or [])]
                }
                parent = next(
                    (
                        item.get("spanID")
                        for item in span.get("references") or []
                        if item.get("refType") in ("CHILD_OF", "FOLLOWS_FROM")
                        and item.get("traceID") == span.get("traceID")
                    ),
                    span.get("parentSpanID") or "",
                )
                start = int(span.get("startTime") or 0) * 1000  # microseconds
                duration = span.get("duration")
                failed = tags.pop("error", False) in (True, "true")
                yield (
                    str(span.get("traceID")), str(span.get("spanID")), _parent(parent),
                    str(span.get("operationName")), str(process.get("serviceName") or ""),
                    str(tags.pop("span.kind", "")), start,
                    start + int(duration) * 1000 if duration is not None else 0,
                    failed or tags.get("otel.status_code") == "ERROR", tags,
                )  # fmt: skip


def _zipkin(documents: Iterable[JSONObject]) -> Iterator[_Span]:
    for span in documents:
        tags = dict(span.get("tags") or {})
        failed = tags.pop("error", "false") != "false"
        start = int(span.get("timestamp") or 0) * 1000
        duration = span.get("duration")
        yield (
            str(span.get("traceId")), str(span.get("id")), _parent(span.get("parentId")),
            str(span.get("name") or ""),
            str((span.get("localEndpoint") or {}).get("serviceName", "")),
            str(span.get("kind") or "").lower(), start,
            start + int(duration) * 1000 if duration is not None else 0, failed, tags,
        )  # fmt: skip


def _read(
    spans: Callable[[Iterable[JSONObject]], Iterator[_Span]],
    tool: str,
    source: Source,
    options: ReadOptions,
    *,
    binary: bool = False,
) -> dict[str, Data]:
    notes: list[str] = []
    if binary:
        rows = list(spans(messages(memoryview(source.bytes()), _EXPORT)))
    else:  # documents, one after the other, which may be lists of spans by trace
        values = json_text.values(source.text(), source, notes)
        lists = (value if isinstance(value, list) else [value] for value in values)
        rows = list(spans(chain.from_iterable(lists)))
    if not rows:
        return {}
    trace, own, parent, operation, service, kind, start, end, failed, attributes = zip(
        *rows, strict=True
    )
    begin, until = np.array(start, np.int64), np.array(end, np.int64)
    known = (begin > 0) & (until >= begin)
    if not known.all():
        left = int((~known).sum())
        notes.append(
            f"left out: {format_items(left, 'span')} without an end, or with one before the start"
        )
    present = dict.fromkeys(zip(trace, own, strict=True))
    above = list(zip(trace, parent, strict=True))
    # Zipkin shares a span's id between client and server: such a span is not its own parent.
    root = np.array([not pair[1] or pair not in present for pair in above]) & known
    children = np.array([*Counter(pair for pair in above if pair in present).values()])
    if children.size:
        middle, most = int(np.median(children)), int(children.max())
        notes.append(
            f"spans with children have {middle} of them (median; at most {most}); the latency of "
            f"such calls: latencykit fanout -n {middle}"
        )
    name = np.array(operation, object)
    others = list(dict.fromkeys(name[known & ~root].tolist()))
    if others and not options.series:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        named = ", ".join(others[:_SHOWN])
        notes.append(f"roots of traces only; further series: {named}{more}")
    further: dict[str, Any] = {}
    if options.columns:
        further = {"service": np.array(service, object), "operation": name}
        further["kind"] = np.array(kind, object)
        counts = Counter(key for span in attributes for key in span)
        for key, _ in counts.most_common(_MOST):
            cells = np.empty(len(rows), object)
            cells[:] = [span.get(key) for span in attributes]
            further.setdefault(key, cells)
    run = Run(
        tool=tool, measure="service", corrected="none", unit="ns", unit_from="format",
        notes=tuple(notes),
    )  # fmt: skip
    outcome = np.where(failed, OUTCOMES.index("error"), 0).astype(np.int8)

    def samples(chosen: AnyArray) -> Samples:
        chosen = chosen[np.argsort(begin[chosen], kind="stable")]
        tag = name[chosen] if len(set(name[chosen].tolist())) > 1 else None
        columns = {key: cells[chosen] for key, cells in further.items()}
        return Samples(
            start=begin[chosen], duration=(until - begin)[chosen], outcome=outcome[chosen], tag=tag,
            run=run.replace(start=float(begin[chosen].min()) / 1e9),
        ).with_columns(
            {key: cells for key, cells in columns.items() if (cells != np.array(None)).any()}
        )  # fmt: skip

    if not known.any():
        return {}
    if options.series:
        timed = np.flatnonzero(known)
        number = {operation: k for k, operation in enumerate(dict.fromkeys(name[timed].tolist()))}
        group = np.array([number[operation] for operation in name[timed]])
        ends = np.cumsum(np.bincount(group))[:-1]
        parts = np.split(timed[np.argsort(group, kind="stable")], ends)
        return dict(zip(number, map(samples, parts), strict=True))
    return {"": samples(np.flatnonzero(root if root.any() else known))}


def _sniff_otlp_protobuf(head: Head) -> Confidence:
    """Recognise the first span: its ids and its times."""
    span = first(head.data, _EXPORT, "resourceSpans", "scopeSpans", "spans")
    known = all(_ID.match(span.get(key, "")) for key in ("traceId", "spanId"))
    return certain(known and span.get("startTimeUnixNano"))


FORMATS = {
    "otlp-traces": (has_match(_JSON, _OTLP), partial(_read, _otlp, "OpenTelemetry")),
    "otlp-traces-protobuf": (
        _sniff_otlp_protobuf,
        partial(_read, _otlp, "OpenTelemetry", binary=True),
    ),
    "jaeger": (has_match(_JSON, _JAEGER, '"spanID"'), partial(_read, _jaeger, "Jaeger")),
    "zipkin": (
        has_match(_JSON, _ZIPKIN, '"traceId"', '"id"', '"timestamp"'),
        partial(_read, _zipkin, "Zipkin"),
    ),
}
