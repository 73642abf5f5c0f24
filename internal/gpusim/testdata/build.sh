#!/bin/sh
# Compiles the test kernels: clang alone, no header, library or tool of NVIDIA's. Debian: apt-get install clang-19
set -eu
cd "$(dirname "$0")"
clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx74 \
	-O3 -ffp-contract=on -gline-directives-only -ffile-prefix-map="$PWD"=. \
	-ffile-prefix-map="$(clang-19 -print-resource-dir)"=clang -S kernels.cu -o kernels.ptx
