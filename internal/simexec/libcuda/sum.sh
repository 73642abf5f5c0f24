#!/bin/sh
# Makes the library for linux/amd64 with the compiler that build.sh names, and notes the hashes.
set -eu
cd "$(dirname "$0")"
sh build.sh libcuda_linux_amd64.so gcc
sha256sum build.sh functions.h libcuda.c libcuda_linux_amd64.so >build.sha256
