"""Where a run comes from: commit, branch and time, from CI variables and git."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from latencykit._records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

# GitHub, GitLab, CircleCI, Buildkite, Jenkins, Azure, Bitbucket, Travis, Drone, TeamCity
_COMMITS = (
    "GITHUB_SHA", "CI_COMMIT_SHA", "CIRCLE_SHA1", "BUILDKITE_COMMIT", "GIT_COMMIT",
    "BUILD_SOURCEVERSION", "BITBUCKET_COMMIT", "TRAVIS_COMMIT", "DRONE_COMMIT_SHA",
    "BUILD_VCS_NUMBER",
)  # fmt: skip
_BRANCHES = (
    "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CIRCLE_BRANCH",
    "BUILDKITE_BRANCH", "BRANCH_NAME", "GIT_BRANCH", "BUILD_SOURCEBRANCHNAME", "BITBUCKET_BRANCH",
    "TRAVIS_BRANCH", "DRONE_BRANCH",
)  # fmt: skip
_GIT_SECONDS = 10  # a repository on a disk that is not there does not stop a run from being kept


@record()
class Origin:
    """The commit of a run, its branch, and its time in seconds since the epoch."""

    commit: str | None = None
    branch: str | None = None
    time: float | None = None


def origin(environment: Mapping[str, str] | None = None) -> Origin:
    """Return what CI variables and git say of the current commit; None where nothing does."""
    known = os.environ if environment is None else environment
    commit = next((known[name] for name in _COMMITS if known.get(name, "").isalnum()), None)
    branch = next((known[name] for name in _BRANCHES if known.get(name)), None)
    commit = commit or _git("rev-parse", "HEAD")
    if branch is None:
        branch = _git("rev-parse", "--abbrev-ref", "HEAD")
        branch = None if branch == "HEAD" else branch  # a commit without a branch
    time = _git("show", "-s", "--format=%ct", commit, "--") if commit else None
    return Origin(commit, branch, float(time) if time and time.isdecimal() else None)


def _git(*words: str) -> str | None:
    """What git prints; None without git, or outside of a repository."""
    try:
        done = subprocess.run(  # noqa: S603 - git, with words that are not options
            ["git", *words],  # noqa: S607
            capture_output=True, text=True, timeout=_GIT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
