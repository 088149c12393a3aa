#!/usr/bin/env bash
# The wheel and the sdist, on their own: installed into an empty environment, used far from the repository.
# `make test-wheel` builds dist/ and calls this. PYTHON may name another interpreter.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
python="${PYTHON:-$root/.venv/bin/python}"
place="$(mktemp -d)"
service=""
finish() { if [ -n "$service" ]; then kill "$service" 2>/dev/null || true; fi; rm -rf "$place"; }
trap finish EXIT

version="$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$root/src/discreet/version.py")"
wheel="$root/dist/discreet-$version-py3-none-any.whl"
sdist="$root/dist/discreet-$version.tar.gz"
tag="$(git -C "$root" describe --tags --exact-match 2>/dev/null || true)"
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then
  echo "the tag is $tag and the version $version" >&2
  exit 1
fi

"$python" -m venv "$place/venv"
bin="$place/venv/bin"
cd "$place"
install="$bin/python -m pip install --quiet --disable-pip-version-check --constraint $root/constraints.txt"
$install "$wheel[serve]" mypy
echo "installed $(basename "$wheel") on $("$bin/python" --version)"

# The sdist holds the same package, and can be built without git.
$install --no-deps --force-reinstall "$sdist"
test "$("$bin/discreet" --version)" = "discreet $version"
$install --no-deps --force-reinstall "$wheel"

"$bin/python" "$root/tests/wheel/decide.py"
"$bin/discreet" demo --quick --out demo --json > demo.json
test -s demo/report.html
echo "discreet demo --quick wrote its report"

# Types are seen from outside.
cp "$root/tests/wheel/consumer.py" .
"$bin/python" -m mypy --strict consumer.py
sed 's/epsilon=1.0/epsilon="one"/' consumer.py > wrong.py
if "$bin/python" -m mypy --strict wrong.py > /dev/null; then
  echo "mypy did not see a wrong type" >&2
  exit 1
fi

# The service answers, with visitors.
DISCREET_ADMIN_KEY=a-key-for-this-test "$bin/discreet" serve --data data --demo --port 0 2> serve.log &
service=$!
"$bin/python" "$root/tests/wheel/answers.py" serve.log a-key-for-this-test
kill -TERM "$service"
wait "$service"
service=""
echo "discreet serve --demo answered and ended well"
