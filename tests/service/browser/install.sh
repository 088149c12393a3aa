#!/bin/sh
# Installs Debian's chromium and chromium-driver, where they are missing and can be installed.
# Exit code 1, with what to do, where they cannot.
set -eu

there() {
    command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1
}

if there; then
    echo "chromium and chromedriver are there: $(chromium --version 2>/dev/null || echo chromium)"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "chromium or chromedriver is missing, and there is no apt-get to install them with." >&2
    echo "Install both by hand and put them on PATH; browser tests cannot run before." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "chromium or chromedriver is missing, and only root can install them. Run:" >&2
    echo "    sudo apt-get install chromium chromium-driver" >&2
    exit 1
fi
echo "installing chromium and chromium-driver"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; }; then
    echo "apt-get could not install chromium and chromium-driver; browser tests cannot run." >&2
    exit 1
fi
there || { echo "chromium and chromium-driver are installed, and not on PATH." >&2; exit 1; }
