#!/bin/sh
# Installs a browser for the tests of the memory report and the site, if there is none: Debian's Chromium, as root only.
for name in chromium chromium-browser google-chrome chrome; do
    command -v $name >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "the tests of the memory report and of the site need a browser: install chromium" >&2
    exit 1
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium >/dev/null
