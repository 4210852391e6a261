"""A stand-in for GitHub and its runner: it runs the jobs of .github/workflows here, against a bare repository.

Real: git, the workflow files, every `run:` step (bash -e), the files of GITHUB_ENV, GITHUB_PATH, GITHUB_OUTPUT and
GITHUB_STEP_SUMMARY, tokens of OpenID Connect that an AWS checks. Stand-ins: the two actions that the files use, the
part of the REST API that ci/forge.py uses, approvals. What isn't implemented is refused, never passed over. It refuses
what GitHub does: rights that `permissions` doesn't give, tokens for pull requests of forks, an environment that nobody
has approved; and what a job's own token pushes or opens starts no workflow.
"""
