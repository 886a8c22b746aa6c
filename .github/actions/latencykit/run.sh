#!/usr/bin/env bash
# Run `check`, `compare` and `history check` as the variables say, write their tables to the job's summary, and end with the worst exit
# status: 0 passed, 1 a negative verdict, 2 an unreadable input or a wrong option. Works with the bash 3.2 of macOS.
set -uo pipefail

status=0
messages=$(mktemp)
trap 'rm -f "$messages"' EXIT

lines=()
split() { # text: its lines without the empty ones, into the array `lines`
  local line
  lines=()
  while IFS= read -r line; do
    line=${line%$'\r'}
    [ -z "${line//[[:space:]]/}" ] || lines+=("$line")
  done <<<"$1"
}

options=()
split "${OPTIONS:-}"
for line in ${lines[@]+"${lines[@]}"}; do
  case $line in
    --*" "*) options+=("${line%% *}" "${line#* }") ;; # an option and its value
    *) options+=("$line") ;;
  esac
done

run() { # title, command…
  local title=$1 table code
  shift
  table=$("$@" --format markdown ${options[@]+"${options[@]}"} 2>"$messages")
  code=$?
  [ -z "${copy:-}" ] || printf '### %s\n\n%s\n' "$title" "$table" >"$copy"
  {
    printf '### %s\n\n' "$title"
    [ -z "$table" ] || printf '%s\n\n' "$table"
    [ ! -s "$messages" ] || printf '<details><summary>Notes</summary>\n\n```text\n%s\n```\n\n</details>\n\n' "$(cat "$messages")"
  } >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
  sed 's/^::/ ::/' "$messages" >&2 # a name in an input is no command to the runner
  if [ $code -gt 1 ]; then
    echo "::error title=$title::$(tail -n 1 "$messages")"
  elif [ $code -eq 1 ]; then
    echo "::error title=$title::negative verdict; the table is in the job's summary"
  fi
  [ $code -le $status ] || status=$code
}

if [ -n "${SLO:-}" ]; then
  split "${CHECK:-}"
  [ "${STRICT:-false}" != true ] || lines+=(--strict)
  run "SLO $SLO" latencykit check --slo "$SLO" ${lines[@]+"${lines[@]}"}
fi
if [ -n "${BASE:-}" ]; then
  sides=()
  split "$BASE"
  for line in ${lines[@]+"${lines[@]}"}; do sides+=(--base "$line"); done
  split "${NEW:-${CHECK:-}}"
  for line in ${lines[@]+"${lines[@]}"}; do sides+=(--new "$line"); done
  split "${FAIL_IF:-}"
  for line in ${lines[@]+"${lines[@]}"}; do sides+=(--fail-if "$line"); done
  [ -z "${RUN_NOISE:-}" ] || sides+=(--run-noise "$RUN_NOISE")
  run "Compared with the base" latencykit compare "${sides[@]}"
fi
if [ -n "${STORE:-}" ]; then
  split "${LABELS:-}"
  labels=()
  for line in ${lines[@]+"${lines[@]}"}; do labels+=(--label "$line"); done
  split "${HISTORY:-}"
  judge=(${lines[@]+"${lines[@]}"} --store "$STORE" ${labels[@]+"${labels[@]}"})
  [ -z "${CONFIRM:-}" ] || judge+=(--confirm "$CONFIRM")
  copy=${COMMENT:-} run "Compared with the history" latencykit history check "${judge[@]}"
  if [ "${ADD:-false}" = true ]; then
    latencykit history add ${lines[@]+"${lines[@]}"} --store "$STORE" ${labels[@]+"${labels[@]}"} \
      ${options[@]+"${options[@]}"} || status=2
  fi
  if [ -n "${PAGE:-}" ]; then
    latencykit history show --store "$STORE" -o "$PAGE" >/dev/null || status=2
  fi
fi
if [ -z "${SLO:-}${BASE:-}${STORE:-}" ]; then
  echo "::error title=latencykit::nothing to do: give check and slo, base and new, or history and store"
  status=2
fi

case $status in 0) verdict=passed ;; 1) verdict=failed ;; *) verdict=error ;; esac
echo "verdict=$verdict" >>"${GITHUB_OUTPUT:-/dev/null}"
exit $status
