#!/bin/sh
# Makes libcuda.so.1 of libcuda.c: sh build.sh FILE [COMPILER]. What is committed for linux/amd64 is by gcc of Debian 12 (12.2.0), with
# which the bytes come out the same; the hash of sources and result is in build.sha256.
set -eu
cd "$(dirname "$0")"
exec "${2:-${CC:-gcc}}" -std=gnu11 -O2 -Wall -Wextra -ffreestanding -fno-builtin -fno-toplevel-reorder -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fcf-protection=none -fvisibility=hidden -fPIC -shared -nostdlib -s \
	-Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--build-id=none -Wl,--hash-style=gnu -Wl,-z,noseparate-code -Wl,-z,noexecstack -Wl,-z,now \
	-o "$1" libcuda.c
