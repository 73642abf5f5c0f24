#!/bin/sh
# Compiles the test kernels: clang alone, no header, library or tool of NVIDIA's. Debian: apt-get install clang-19
set -eu
cd "$(dirname "$0")"

compile() { # NAME ARCH PTX
	clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch="$2" -Xclang -target-feature -Xclang +"$3" \
		-O3 -ffp-contract=on -gline-directives-only -ffile-prefix-map="$PWD"=. -ffile-prefix-map="$(cd ../../../examples/sim && pwd)"=examples/sim \
		-ffile-prefix-map="$(clang-19 -print-resource-dir)"=clang -I ../../../examples/sim -S "$1.cu" -o "$1.ptx"
}

compile kernels sm_80 ptx74
compile lockfree sm_80 ptx74
compile hopper sm_90a ptx80
