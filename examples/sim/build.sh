#!/bin/sh
# Compiles the examples with clang alone, without a header, library or tool of NVIDIA's. Debian: apt-get install clang-19
set -eu
cd "$(dirname "$0")"
for k in sum sum_bug tour; do
	clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx74 \
		-O3 -ffp-contract=on -gline-directives-only -ffile-prefix-map="$PWD"=. \
		-ffile-prefix-map="$(clang-19 -print-resource-dir)"=clang -S "$k.cu" -o "$k.ptx"
done
sha256sum cuda.h *.cu sum.ptx sum_bug.ptx tour.ptx > build.sha256 # a test compares: whoever edits a source builds again
